"""Agents that look at an image."""
