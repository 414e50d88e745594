"""Other programs' files: imports and exports."""
