"""Attention as GPU programs in Triton; importing a module of this folder loads triton."""
