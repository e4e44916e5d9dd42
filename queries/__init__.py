"""What is asked: GSQL text to typed plan, and the stream contract."""
