"""Vocabulary, rules of word association, vectors."""
