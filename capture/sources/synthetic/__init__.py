"""Generated traffic as a packet source."""
