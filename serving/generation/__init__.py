"""``generate``: answers of agents to a whole set."""
