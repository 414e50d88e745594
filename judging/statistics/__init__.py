"""Measures of verdicts with their intervals."""
