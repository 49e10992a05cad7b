"""The console: pages made on the server, for people who look and act. Thin, as the HTTP API, and by the same deeds."""
