"""Numba kernels: flat arrays and scalars only; they know nothing of users and items."""
