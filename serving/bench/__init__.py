"""``turinglike bench``: how fast each agent is on this machine, and what limits it."""
