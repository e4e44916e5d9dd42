"""Benchmarks: run each as ``python -m benchmarks.NAME`` from the top of the checkout."""
