"""Text for people: plans, summaries, progress and lists."""
