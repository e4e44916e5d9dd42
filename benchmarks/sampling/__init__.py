"""What sampling costs and saves, and how good its answers are."""
