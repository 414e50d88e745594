"""Agents that use words: conversations and word association."""
