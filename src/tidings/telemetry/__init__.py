"""What the system tells about itself: typed notices, turned into log lines in one place."""
