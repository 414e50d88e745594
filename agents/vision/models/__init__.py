"""Networks and algorithms behind the vision agents that no library has."""
