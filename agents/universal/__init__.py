"""Agents of all six tasks."""
