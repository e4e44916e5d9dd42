"""What the job counts and reports while it runs."""
