"""What the system tells about itself: typed notices; one place turns them into log lines, one into metrics."""
