"""English words and their vectors, the rules of word association, and how a reply is read."""
