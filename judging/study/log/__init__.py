"""What happened in a study: its events, written down line by line, and the state that they add up to."""
