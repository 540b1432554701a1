"""Checks of an installation: does it compute the right results (`checks`), and how fast (`speed`).

The modules import packages that may be missing or broken only when a check needs them.
"""
