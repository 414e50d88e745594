"""Filters of messages and conversations of machines and people."""
