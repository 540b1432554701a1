"""The output of the commands: tables and JSON of results, progress bars, messages."""
