"""A run's records for other programs, one module per family of formats."""
