"""Chains of operators that tasks compute in partitions."""
