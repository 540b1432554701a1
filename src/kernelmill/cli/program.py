"""Lets editable installations from before `program` became a folder import it; to be removed."""

from pathlib import Path

__path__ = [str(Path(__file__).with_suffix(""))]
