"""Stimulus sets: read, checked, made."""
