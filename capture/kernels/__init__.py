"""Kernels: marked, compiled by numba or natively, kept on disk, loaded."""
