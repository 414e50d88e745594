"""Prompts and ways to draw texts, for which the engines are compared."""

from agents.language.engines.text_request import Sampling

PROMPTS = [
    "Hi! How are you",
    "Alice: I like long books. John: Why? Alice:",
    "x",
    "Tell me more about music and movies, please. " * 3,
    "Cue: hot; Guess: cold Cue: dog; Guess:",
    "é 世界",
    "The technology of sports",
    "what do you think",
]
# Every row asks for something else.
DRAWN = [
    Sampling(temperature=1.0, max_tokens=12),
    Sampling(temperature=0.0, max_tokens=20, frequency_penalty=2, presence_penalty=2),
    Sampling(temperature=0.7, top_k=20, max_tokens=24, stops=("a", "Guess:")),
    Sampling(temperature=1.3, top_p=0.9, max_tokens=7, min_tokens=7),
    Sampling(temperature=0.8, max_tokens=30, frequency_penalty=2, presence_penalty=2, stops=("o",)),
    Sampling(temperature=0.0, max_tokens=1),
    Sampling(temperature=2.0, max_tokens=16, presence_penalty=-1, stops=("e", "t", " ")),
    Sampling(temperature=0.0, max_tokens=18),
]
