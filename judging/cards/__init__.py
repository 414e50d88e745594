"""A card for a model: ``turinglike test`` answers, judges and scores in one command, against a pool of participants."""
