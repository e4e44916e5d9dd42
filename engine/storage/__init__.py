"""Durable files of the job: commits, outputs, watchlists and what writers report."""
