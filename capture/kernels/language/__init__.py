"""The language of kernels, for both compilers: kinds of values, and operations with their code."""
