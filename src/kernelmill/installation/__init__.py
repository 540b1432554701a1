"""Checks of an installation: correctness of results (`checks`) and speed (`speed`).

Packages that may be missing or broken are imported only when a check needs them.
"""
