"""The language of people's answers: agents answer in English, so that another language tells people from machines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from agents.color_words import COLOR_LANGUAGES, english_color, language_of_colors
from agents.contract import is_installed
from agents.errors import InputError
from agents.language.words.vocabulary import is_spelled_right
from serving.exchange.importing.source import ImportOptions, Source
from serving.files.words import count, shown

EXAMPLES = 4  # words that a sentence shows
LOOKED_AT = 500  # different words; more would say the same
FEWEST = 4  # different words that say something
HALF = 0.5  # of different words: fewer that are not English are names and slips


def check_color_words(options: ImportOptions) -> None:
    """Raises InputError for a language whose words are not known, and for a task that is not of colours."""
    if options.color_words is None:
        return
    if options.color_words not in COLOR_LANGUAGES:
        raise InputError(f"--color-words {shown(options.color_words)}: there are {', '.join(COLOR_LANGUAGES)}")
    if options.task not in (None, "color_estimation"):
        raise InputError("--color-words is for answers of colours, as with --task color")


def translate_colors(source: Source, language: str) -> None:
    """Make colour words of ``language`` English: "rouge" becomes red, and stays in ``raw``. Words that are none of the
    eleven stay as they are, and a remark counts them."""
    source.used.add("color_words")
    unknown = Counter[str]()
    translated = 0
    for place, answer in enumerate(source.answers):
        if answer.kind != "human" or answer.answer is None:
            continue
        written = str(answer.answer["color"])
        color = english_color(written, language)
        if color is None:
            unknown[written] += 1
            continue
        translated += 1
        source.answers[place] = replace(answer, answer={**answer.answer, "color": color})
    name = COLOR_LANGUAGES[language]
    source.remarks.append(f"colours in {name} were read as the English words: {count(translated, 'answer')}")
    if unknown:
        what = f"answers that are none of the eleven colours in {name} stay as they are"
        source.remarks.append(f"{what}: {unknown.total():,}{_examples(unknown)}")


def tell_language(source: Source) -> None:
    """Add a remark where people's answers look like another language than English."""
    if source.task == "color_estimation":
        colors = Counter(str(answer["color"]) for answer in _answers(source))
        language = language_of_colors(colors)
        if language is not None:
            words = Counter({word: n for word, n in colors.items() if english_color(word, language)})
            source.remarks.append(
                f"the colours look {COLOR_LANGUAGES[language]}{_examples(words)}, and machines answer in English: a "
                f"judge can tell people by the language. --color-words {language} reads them as the English words"
            )
    elif source.task in ("word_association", "object_detection") and is_installed("wordfreq"):
        different = list(islice(dict.fromkeys(_words(source)), LOOKED_AT))
        other = [word for word in different if not is_spelled_right(word)]
        if len(different) >= FEWEST and len(other) > HALF * len(different):
            source.remarks.append(
                f"more than half of the different words are not English{_examples(Counter(other))}, and machines "
                "answer in English: a judge can tell people by the language"
            )


def _answers(source: Source) -> Iterator[Mapping[str, Any]]:
    return (answer.answer for answer in source.answers if answer.kind == "human" and answer.answer is not None)


def _words(source: Source) -> Iterator[str]:
    for answer in _answers(source):
        for text in answer.get("labels") or [answer.get("word", "")]:
            yield from str(text).lower().split()


def _examples(words: Counter[str]) -> str:
    more = ", …" if len(words) > EXAMPLES else ""
    return f" ({', '.join(shown(word) for word, _ in words.most_common(EXAMPLES))}{more})"
