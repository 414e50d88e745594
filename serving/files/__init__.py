"""Files and words: what every other room writes and prints with."""
