"""Stimulus sets, run folders and records: written, read and checked."""
