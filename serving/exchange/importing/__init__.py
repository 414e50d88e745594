"""Answers of people and other machines, from other programs' files: ``turinglike import``."""
