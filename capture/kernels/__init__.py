"""Compiled code: the numba door, intrinsics, and compiled kernels on disk."""
