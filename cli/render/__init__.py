"""Text for users: plans, summaries, progress and lists."""
