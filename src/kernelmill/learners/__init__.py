"""Estimators on features that are never stored."""
