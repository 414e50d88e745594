"""What the universal agent is asked, and how its answers are read: prompts, and pure functions of a reply's text.

The prompts are those of the 2025 paper (Methods; lines that tell people to press a button left out), word for word.
The instructions for captions are those of :mod:`agents.vision.llava_next`; the questions of word
association and conversation are in :mod:`agents.language.prompts`.

How the papers read the replies is not published. A reader here takes what models do say: bare words, sentences, lists
with numbers, dashes or asterisks, JSON, tables. It raises AnswerError ``unparsable``, the reply in its message, rather
than take an apology for an answer.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from agents.errors import AnswerError
from agents.language.words.replies import is_apology, unmarked
from agents.vision import colors

COLOR = (
    "What is the dominant color in this picture? Select from the options: red, pink, orange, yellow, purple, green, "
    "blue, brown, gray, black, white. Provide your answer with only one word."
)
OBJECTS = "What objects do you see in this image? Please provide 3 different one-word responses."
SCANPATH = (
    "Identify objects and regions that would attract a human's gaze during a natural viewing of the scene. Predict the "
    "sequence with {count} fixations a typical observer might make, explaining why each fixation occurs. The output "
    "should be formatted as a structured fixation sequence, where each fixation includes the following attributes:\n"
    "Coordinates(integer x indicating width ranging from 0 to {width}, integer y indicating height ranging from 0 to "
    "{height}): Approximate fixation position in the image.\n"
    "Fixation Duration(string): The estimated time spent fixating on this object.\n"
    "Justification(string): A short explanation of why this object or region attracted attention.\n"
)

LONGEST = 4000  # characters of a reply in an error
MOST_WORDS = 3  # of one object
_FENCE = re.compile(r"```[\w-]*\n?")
_BULLET = re.compile(r"\s*(?:[-*•+–]\s+|\(?\d{1,2}[.):]\s*|\(?[a-c][.)]\s+)")


def unparsable(text: str, wanted: str) -> AnswerError:
    """The error for a reply that is no answer; the reply stands in it."""
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return AnswerError("unparsable", f"no {wanted} in the reply: {shown!r}")


# colour


_COLOR_WORD = re.compile(rf"\b(?:{'|'.join([*colors.WORDS, 'grey'])})\b")


def read_color(text: str) -> tuple[str, str | None]:
    """The one of the eleven words that a reply gives, and the CSS3 name it was made of, if it said another.

    Of several the one said to be ("the dominant color is …"), or else the first; of a compound ("blue-green", "light
    blue") the last. A reply with most of the eleven repeats the question. A reply of up to three words may name a CSS3
    colour instead ("teal"). Raises AnswerError.
    """
    said = unmarked(text).lower()
    runs = _color_runs(said)
    if is_apology(text) or len({word for _, word in runs}) > len(colors.WORDS) // 2:
        raise unparsable(text, "colour")
    if runs:
        named = re.search(r"\bcolou?r\b[^.]*?\b(?:is|would be|seems to be|appears to be)\b", said)
        after = [word for place, word in runs if named is not None and place >= named.end()]
        return (after or [runs[0][1]])[0], None
    words = re.findall(r"[a-z]+", said)
    for name in ["".join(words), *words][: 1 + MOST_WORDS] if len(words) <= MOST_WORDS else []:
        if name in colors.CSS3 or name in colors.ALIASES:
            return colors.word_of(name), name
    raise unparsable(text, "colour")


def _color_runs(said: str) -> list[tuple[int, str]]:
    """(place, word) of each colour word; of those with nothing but a hyphen or a space between them the last."""
    found = [
        (match.start(), match.end(), match.group().replace("grey", "gray")) for match in _COLOR_WORD.finditer(said)
    ]
    kept = [first for first, second in pairwise([*found, (len(said) + 2, 0, "")]) if second[0] - first[1] > 1]
    return [(start, word) for start, _, word in kept]


# objects


def read_objects(text: str, most: int = 3) -> list[str]:
    """The first ``most`` different objects that a reply names, in small letters, without articles. Raises
    AnswerError."""
    if is_apology(text):
        raise unparsable(text, "objects")
    named = _named_in_json(text) or _named_in_lines(text) or _named_in_prose(text)
    found = list(dict.fromkeys(filter(None, map(_object, named))))
    if not found:
        raise unparsable(text, "objects")
    return found[:most]


def _named_in_json(text: str) -> list[str]:
    """The entries of a list, or the values of an object, if the reply is JSON."""
    match = re.search(r"[\[{].*[\]}]", text, re.DOTALL)
    try:
        value = json.loads(match.group()) if match else []
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list)), list(value.values()))
    labels = [_label(one) for one in value]
    return labels if all(labels) else []


def _label(value: Any) -> str:
    """A list's entry: a string, or an object that has one under a name like "object" or "label"."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("object", "label", "name", "response", "word") if key in value), "")
    return value if isinstance(value, str) else ""


def _named_in_lines(text: str) -> list[str]:
    """The entries of a list with numbers or bullets; one without them has nothing but short lines."""
    lines = [line for line in _FENCE.sub("", text).splitlines() if line.strip()]
    marked = [line[match.end() :] for line in lines if (match := _BULLET.match(line))]
    if marked:
        return [part for line in marked for part in (_numbered(line) or [line])]
    short = [line for line in lines if len(line.split()) <= MOST_WORDS and not line.rstrip().endswith(":")]
    return short if len(short) > 1 and not any("," in line for line in short) else []


def _numbered(line: str) -> list[str]:
    """ "Cat 2. Dog 3. Lamp" as its three parts; nothing for a line that has one."""
    parts = re.split(r"[\s,;]+\(?\d{1,2}[.)]\s*", line)
    return parts if len(parts) > 1 else []


def _named_in_prose(text: str) -> list[str]:
    said = unmarked(_FENCE.sub("", text)).strip()
    said = said.rpartition(":")[2].strip() or said  # "Here are three objects: …"
    said = re.sub(
        r"^.*?\b(?:see|are|include|includes|contains|shows|is|objects)\b(?=\s+\w)", "", said, count=1, flags=re.I | re.S
    )
    parts = re.split(r"[,;/|\n]|\.(?:\s|$)|\band\b|&", said)
    parts = [part for part in parts if part.strip()]
    return parts[0].split() if len(parts) == 1 and len(parts[0].split()) == 3 else parts


def _object(part: str) -> str:
    """One object's word or words; "" for what is too long to be one."""
    said = unmarked(part).strip().lower()
    said = re.split(r"\s[-–—]\s|:|\(", said)[0]  # what is said about it
    said = re.sub(r"^(?:(?:there (?:is|are)|a|an|the|some|one|and)\s+)+", "", said.strip(" \t.,;!?)]}")).strip()
    return said if 0 < len(said.split()) <= MOST_WORDS and re.search(r"[^\W\d]", said) else ""


# captions


def read_caption(text: str) -> str:
    """The caption without quotation marks, a heading ("Caption:") or marks of Markdown, on one line. Raises
    AnswerError."""
    said = " ".join(re.sub(r"[*_`#]+", "", _FENCE.sub("", text)).split())
    said = re.sub(
        r"^(?:(?:here is|here's) (?:a|the) )?(?:caption|description)(?: of the scene)?\s*:\s*", "", said, flags=re.I
    )
    if len(said) > 1 and said[0] in "\"“'‘" and said[-1] in "\"”'’":
        said = said[1:-1].strip()
    if not re.search(r"\w", said) or is_apology(said):
        raise unparsable(text, "caption")
    return said
