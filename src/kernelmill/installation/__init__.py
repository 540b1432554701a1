"""Checks of an installation: correctness of results (`checks`) and speed (`speed`).

The modules import packages that may be missing or broken only when a check needs them.
"""
