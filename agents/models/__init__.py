"""Checkpoints: finding, fetching, loading and sampling them."""
