"""Trials, the judges that answer them, and scores of their verdicts."""
