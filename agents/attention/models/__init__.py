"""Networks and algorithms behind the attention agents that no library has."""
