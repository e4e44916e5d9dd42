"""Stateful functions and superaggregates of the sampling operator."""
