"""A run's records in other programs' forms: ``turinglike export``."""
