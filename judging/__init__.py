"""Who passes as a person: trials, the judges that answer them, and scores of their verdicts."""
