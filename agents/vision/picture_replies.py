"""The papers' questions about pictures (2025 paper, Methods), and how replies to them are read.

A reply without an answer raises the error ``unparsable``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agents.answers import COLORS
from agents.errors import AnswerError
from agents.language.words.replies import is_apology, unmarked
from agents.vision import colors

COLOR = (
    "What is the dominant color in this picture? Select from the options: red, pink, orange, yellow, purple, green, "
    "blue, brown, gray, black, white. Provide your answer with only one word."
)
"""The question for the dominant colour."""
OBJECTS = "What objects do you see in this image? Please provide 3 different one-word responses."
"""The question for three objects."""
SCANPATH = (
    "Identify objects and regions that would attract a human's gaze during a natural viewing of the scene. Predict the "
    "sequence with {count} fixations a typical observer might make, explaining why each fixation occurs. The output "
    "should be formatted as a structured fixation sequence, where each fixation includes the following attributes:\n"
    "Coordinates(integer x indicating width ranging from 0 to {width}, integer y indicating height ranging from 0 to "
    "{height}): Approximate fixation position in the image.\n"
    "Fixation Duration(string): The estimated time spent fixating on this object.\n"
    "Justification(string): A short explanation of why this object or region attracted attention.\n"
)
"""The question for a scanpath; {count} fixations, {width} and {height} of the picture in pixels."""

LONGEST = 4000
"""Characters of a reply that an error quotes."""
MOST_WORDS = 3
"""The most words of an object or of a bare colour's name."""
_FENCE = re.compile(r"```[\w-]*\n?")


def unparsable(text: str, wanted: str) -> AnswerError:
    """The error of a reply ``text`` in which there is no ``wanted``."""
    quoted = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return AnswerError("unparsable", f"no {wanted} in the reply: {quoted!r}")


# colour

_COLOR_WORD = re.compile(rf"\b(?:{'|'.join([*COLORS, 'grey'])})\b")
_COLOR_IS = re.compile(r"\bcolou?r\b[^.]*?\b(?:is|would be|seems to be|appears to be)\b")


def read_color(text: str) -> tuple[str, str | None]:
    """(colour word, None), or (colour word, CSS3 name) where a name such as "teal" was said. Raises AnswerError.

    Where several words stand, the one behind "the color is" counts, else the first; "blue-green" is green.
    """
    plain = unmarked(text).lower()
    matches = [(match.start(), match.end(), match[0].replace("grey", "gray")) for match in _COLOR_WORD.finditer(plain)]
    beyond = (len(plain) + 2, 0, "")
    # (place, word); of words with only a hyphen or a space between them the last.
    runs = [(first[0], first[2]) for first, second in pairwise([*matches, beyond]) if second[0] - first[1] > 1]
    if is_apology(text) or len({word for _, word in runs}) > len(COLORS) // 2:
        raise unparsable(text, "colour")
    if runs:
        named = _COLOR_IS.search(plain)
        after = [word for place, word in runs if named is not None and place >= named.end()]
        return (after or [runs[0][1]])[0], None
    words = re.findall(r"[a-z]+", plain)
    if len(words) <= MOST_WORDS:
        for name in ["".join(words), *words]:
            if name in colors.CSS3 or name in colors.ALIASES:
                return colors.word_of(name), name
    raise unparsable(text, "colour")


# objects

_BULLET = re.compile(r"\s*(?:[-*•+–]\s+|\(?\d{1,2}[.):]\s*|\(?[a-c][.)]\s+)")
_BEFORE_OBJECTS = re.compile(
    r"^.*?\b(?:see|are|include|includes|contains|shows|is|objects)\b(?=\s+\w)", re.IGNORECASE | re.DOTALL
)


def read_objects(text: str, most: int = 3) -> list[str]:
    """The first ``most`` different objects, in small letters without articles. Lists in JSON, in lines and in prose are
    read. Raises AnswerError."""
    named: list[str] = []
    if not is_apology(text):
        named = _named_in_json(text) or _named_in_lines(text) or _named_in_prose(text)
    objects = list(dict.fromkeys(filter(None, map(_object, named))))
    if not objects:
        raise unparsable(text, "objects")
    return objects[:most]


def _named_in_json(text: str) -> list[str]:
    plain = _FENCE.sub("", text).lstrip()
    strings = re.findall(r'"([^"]*)"\s*(:?)', plain) if plain[:1] in ("[", "{") else []
    return [text for text, is_key in strings if not is_key]


def _named_in_lines(text: str) -> list[str]:
    lines = [line for line in _FENCE.sub("", text).splitlines() if line.strip()]
    marked = [line[match.end() :] for line in lines if (match := _BULLET.match(line))]
    if marked:
        # "Cat 2. Dog 3. Lamp" has three.
        return [part for line in marked for part in re.split(r"[\s,;]+\(?\d{1,2}[.)]\s*", line)]
    short = [line for line in lines if len(line.split()) <= MOST_WORDS and not line.rstrip().endswith(":")]
    return short if len(short) > 1 and not any("," in line for line in short) else []


def _named_in_prose(text: str) -> list[str]:
    plain = unmarked(_FENCE.sub("", text)).strip()
    plain = plain.rpartition(":")[2].strip() or plain  # "Here are three objects: …"
    plain = _BEFORE_OBJECTS.sub("", plain, count=1)
    parts = [part for part in re.split(r"[,;/|\n]|\.(?:\s|$)|\band\b|&", plain) if part.strip()]
    return parts[0].split() if len(parts) == 1 and len(parts[0].split()) == 3 else parts


def _object(part: str) -> str:
    plain = re.split(r"\s[-–—]\s|:|\(", unmarked(part).strip().lower())[0]  # without what is written about it
    plain = re.sub(r"^(?:(?:there (?:is|are)|a|an|the|some|one|and)\s+)+", "", plain.strip(" \t.,;!?)]}")).strip()
    return plain if 0 < len(plain.split()) <= MOST_WORDS and re.search(r"[^\W\d]", plain) else ""


# captions

_HEADING = re.compile(
    r"^(?:(?:here is|here's) (?:a|the) )?(?:caption|description)(?: of the scene)?\s*:\s*", re.IGNORECASE
)


def read_caption(text: str) -> str:
    """The caption on one line, without a heading, Markdown or quotation marks around it. Raises AnswerError."""
    plain = " ".join(re.sub(r"[*_`#]+", "", _FENCE.sub("", text)).split())
    plain = _HEADING.sub("", plain)
    if len(plain) > 1 and plain[0] in "\"“'‘" and plain[-1] in "\"”'’":
        plain = plain[1:-1].strip()
    if not re.search(r"\w", plain) or is_apology(plain):
        raise unparsable(text, "caption")
    return plain


# scanpaths; every repetition has a limit, so that no text takes long

_NUMBER = r"[-−]?\d{1,7}(?:\.\d{1,7})?"
_UNIT = r"\s{0,3}(?:px|pixels?)?"
_SPAN_OF = rf"({_NUMBER})\s{{0,3}}(?:(?:-|–|—|to)\s{{0,3}}({_NUMBER}))?"
_NAME = r"(?:[ _-]?(?:coord(?:inate)?|pos(?:ition)?))?[\s\"'`*=:]{1,6}"
# The ways in which two numbers are a place: named x and y, in brackets, after a word that says so, at a line's start.
_PLACES = (
    re.compile(
        rf"(?<![a-z])x{_NAME}({_NUMBER}){_UNIT}[^\w-]{{0,40}}(?:[-•]\s{{1,3}}\W{{0,4}})?y{_NAME}({_NUMBER})",
        re.IGNORECASE,
    ),
    re.compile(rf"[(\[{{<]\s{{0,3}}({_NUMBER}){_UNIT}\s{{0,3}}[,;]\s{{0,3}}({_NUMBER}){_UNIT}\s{{0,3}}[)\]}}>,;]"),
    re.compile(
        rf"\b(?:coordinates?|position|point|location|fixation|at)\b[^\d\n-]{{0,24}}({_NUMBER}){_UNIT}\s{{0,3}}[,;x×]"
        rf"\s{{0,3}}({_NUMBER})\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^[^\w\n-]{{0,12}}(?:\d{{1,2}}\s{{0,3}}[.):]\s{{0,3}})?({_NUMBER}){_UNIT}\s{{0,3}}[,;]\s{{0,3}}({_NUMBER})\b"
        r"(?!\s{0,3}m?s\b)",
        re.MULTILINE,
    ),
)
_ENTRY = re.compile(
    r"^[^\w\n({\[]{0,12}(?:fixation|point|step|no\.?|number)?[ \t]{0,3}#?[ \t]{0,3}(\d{1,3})\b",
    re.IGNORECASE | re.MULTILINE,
)
_WITH_UNIT = re.compile(rf"{_SPAN_OF}\s{{0,3}}(milliseconds?|msecs?|ms|seconds?|secs?|s)\b", re.IGNORECASE)
_AFTER_DURATION = re.compile(rf"duration\w{{0,12}}[^\d\n]{{0,20}}{_SPAN_OF}", re.IGNORECASE)
_MOST_SECONDS = 20  # a larger number without a unit is in milliseconds


@dataclass(frozen=True, slots=True)
class Fixation:
    """A fixation as a model named it, which may lie beside the picture."""

    x: int | float
    """Pixels from the left."""
    y: int | float
    """Pixels from the top."""
    duration_ms: float | None = None
    """How long, in milliseconds, if it is said."""


def read_scanpath(text: str) -> list[Fixation]:
    """The fixations in a numbered list, in a table or in running text. Raises AnswerError if there is none."""
    fixations = max(_in_text(_table_as_text(text)), _in_text(text), key=len)
    if len(fixations) < (3 if is_apology(text) else 1):
        raise unparsable(text, "fixation")
    return fixations


def duration_ms(text: str) -> float | None:
    """The first duration in ``text`` in milliseconds: one with a unit, or a number behind "duration". Without a unit,
    numbers up to 20 are seconds. A range gives its middle."""
    span = _WITH_UNIT.search(text)
    unit = None if span is None else span[3]
    span = span or _AFTER_DURATION.search(text)
    if span is None:
        return None
    value = _number(span[1]) if span[2] is None else (_number(span[1]) + _number(span[2])) / 2
    if value < 0:
        return None
    in_seconds = value <= _MOST_SECONDS if unit is None else not unit.lower().startswith("m")
    return round(value * 1000 if in_seconds else value, 3)


def _number(text: str) -> int | float:
    value = float(text.replace("−", "-"))
    return int(value) if value.is_integer() else value


def _table_as_text(text: str) -> str:
    rows: list[str] = []
    columns: list[int] = []
    for line in text.splitlines():
        cells = [cell.strip(' *`"') for cell in line.strip().strip("|").split("|" if "|" in line else ",")]
        columns = _columns(cells) or columns
        if columns and max(columns[:2]) < len(cells):
            duration = "".join(cells[column] for column in columns[2:] if column < len(cells))
            rows.append(f"({cells[columns[0]]}, {cells[columns[1]]}) duration: {duration}")
    return "\n".join(rows)


def _columns(cells: Sequence[str]) -> list[int]:
    names = [re.sub(r"\(.*?\)|[^a-z]", "", cell[:60].lower()) for cell in cells]
    across = [column for column, name in enumerate(names) if re.fullmatch("x(coord.*|pos.*)?", name)]
    down = [column for column, name in enumerate(names) if re.fullmatch("y(coord.*|pos.*)?", name)]
    durations = [column for column, name in enumerate(names) if "duration" in name or "time" in name]
    return [across[0], down[0], *durations[:1]] if across and down else []


def _in_text(text: str) -> list[Fixation]:
    if entries := _entries(text):
        return [fixation for entry in entries if (fixation := _first(entry)) is not None]
    matches = max(([*pattern.finditer(text)] for pattern in _PLACES), key=len)
    starts = [match.start() for match in matches]
    ends = [match.end() for match in matches]
    behind = [text[end:start] for end, start in zip(ends, [*starts[1:], len(text)], strict=False)]
    return [_fixation(match, words) for match, words in zip(matches, behind, strict=True)]


def _entries(text: str) -> list[str]:
    starts: list[re.Match[str]] = []
    for match in _ENTRY.finditer(text):
        if int(match[1]) == len(starts) + 1:
            starts.append(match)
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [text[match.end() : end] for match, end in zip(starts, ends, strict=False)] if len(starts) > 1 else []


def _first(entry: str) -> Fixation | None:
    place = next(filter(None, (pattern.search(entry) for pattern in _PLACES)), None)
    return place and _fixation(place, f"{entry[: place.start()]} {entry[place.end() :]}")


def _fixation(place: re.Match[str], words: str) -> Fixation:
    return Fixation(_number(place[1]), _number(place[2]), duration_ms(words))
