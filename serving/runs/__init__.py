"""Stimulus sets, run folders and their records: written, read and checked."""
