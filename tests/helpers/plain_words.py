"""Words that the papers' rules for words leave as they are (:mod:`agents.language.words.rules`).

Trials read every word by these rules: of "word7" they make "word", and "a" is a stop word. A test whose words are to
stay apart needs words of the language.
"""

PLAIN_WORDS = (
    "apple",
    "bread",
    "bridge",
    "butter",
    "candle",
    "carpet",
    "castle",
    "chair",
    "cloud",
    "corner",
    "desert",
    "dinner",
    "engine",
    "farmer",
    "finger",
    "flower",
    "forest",
    "garden",
    "guitar",
    "hammer",
    "island",
    "jacket",
    "kitchen",
    "ladder",
    "market",
    "mirror",
    "mountain",
    "needle",
    "ocean",
    "paper",
)
