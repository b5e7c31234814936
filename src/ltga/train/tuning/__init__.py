"""Tuning: which settings are tried, a search that the store of runs remembers, and what came of it."""
