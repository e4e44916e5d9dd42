"""Aggregates by family; ``queries/catalog/aggregates.py`` lists them all."""
