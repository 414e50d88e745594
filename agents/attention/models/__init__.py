"""Networks and algorithms of the attention agents."""
