"""The program `kernelmill`: command group, shared options, errors, files, signals and output.

Importing this package imports nothing else, because `signals` has to be loaded before click is.
"""
