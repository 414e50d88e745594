"""Judges and agents on a common scale."""
