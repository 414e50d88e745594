"""Studies: people judge trials, or answer stimuli, in a browser."""
