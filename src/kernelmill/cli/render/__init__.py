"""What the commands print: tables and JSON of results, progress bars, messages."""
