"""Runs that are kept: their folder, resuming to the bit, and several processes."""
