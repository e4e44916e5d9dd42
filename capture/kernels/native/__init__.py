"""Compiles generated kernels to machine code, without numba's type inference and lowering."""
