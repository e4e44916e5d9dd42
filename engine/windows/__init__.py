"""Windows from slices: a table of live groups to which slices come and from which they leave."""
