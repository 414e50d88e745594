"""The command line, but for what belongs to one room."""
