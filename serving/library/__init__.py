"""Turinglike as a Python library: answers without a command."""
