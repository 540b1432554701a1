"""Sketches: short random summaries of long vectors that keep inner products."""
