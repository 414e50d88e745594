"""Agents that look at an image: colours, captions, objects."""
