"""The terminal of the live view: keys, colours, and the lines that have changed."""
