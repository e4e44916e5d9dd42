"""Spark's cluster managers: masters, their configuration, and the check of executors."""
