"""Compiled loops for the CPU; importing any of them loads numba."""
