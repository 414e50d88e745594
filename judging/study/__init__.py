"""Studies: people judge trials in a browser."""
