"""A slow dissector in plain Python, the oracle of the compiled decoder."""
