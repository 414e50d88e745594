"""Judges: classifiers and language models, and how they are asked."""
