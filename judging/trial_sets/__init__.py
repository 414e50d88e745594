"""Trials: drawn, balanced, blinded."""
