"""How replies about pictures are read, whatever form they have."""

import contextlib
import itertools
import json
from collections.abc import Callable

import pytest

from agents.errors import AnswerError
from agents.universal.universal import READ
from agents.vision.picture_replies import (
    Fixation,
    read_caption,
    read_color,
    read_objects,
    read_scanpath,
)

APOLOGIES = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot see the image you are referring to. Red or blue, perhaps?",
    "Unfortunately, I am unable to view images directly.",
    "As an AI language model, I do not see a cat, a dog or a lamp.",
    "I don't have the ability to see (100, 200) or any other place.",
    "",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Blue", ("blue", None)),
        ("Grey", ("gray", None)),
        ("The dominant color in this picture is brown.", ("brown", None)),
        ("There is some red, but the dominant colour is clearly white.", ("white", None)),
        ("Blue-green", ("green", None)),
        ("black and white", ("black", None)),
        ("Reddish brown", ("brown", None)),
        ("Teal", ("blue", "teal")),
        ("Navy blue", ("blue", None)),
        ("Dark khaki", ("green", "darkkhaki")),
    ],
)
def test_colours_are_read(text: str, expected: tuple[str, str | None]) -> None:
    assert read_color(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "cat, sofa, lamp",
        "1. Cat\n2. Sofa\n3. Lamp",
        "- cat\n- sofa\n- lamp",
        "Cat Sofa Lamp",
        "I see a cat, a sofa, and a lamp.",
        "Here are three one-word responses:\n\n1. Cat\n2. Sofa\n3. Lamp",
        "Sure! Three objects: **Cat**, **Sofa**, **Lamp**",
        '```json\n["Cat", "Sofa", "Lamp"]\n```',
        '{"objects": ["cat", "sofa", "lamp"]}',
        '[{"object": "cat"}, {"object": "sofa"}, {"object": "lamp"}]',
        "1. Cat - a small tabby\n2. Sofa - in the corner\n3. Lamp: switched on",
        "cat, cat, sofa, lamp, rug",
        "Cat. Sofa. Lamp.",
    ],
)
def test_objects_are_read(text: str) -> None:
    assert read_objects(text) == ["cat", "sofa", "lamp"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man rides a horse.", "A man rides a horse."),
        ("“A man rides\na horse.”", "A man rides a horse."),
        ("**Description:** A man rides a horse.", "A man rides a horse."),
        ("Here is a caption: A man rides a horse.", "A man rides a horse."),
        ('A man says "hello" to a horse', 'A man says "hello" to a horse'),
    ],
)
def test_captions_lose_what_stands_around_them(text: str, expected: str) -> None:
    assert read_caption(text) == expected


PATH = [Fixation(640, 400, 300), Fixation(1021, 88, 250), Fixation(-5, 1100, 400)]
DICTS = [
    {"x": 640, "y": 400, "duration": "300 ms", "justification": "the face at (1, 2), seen for 9 s"},
    {"x": 1021, "y": 88, "duration": "0.25 s", "justification": "a sign"},
    {"x": -5, "y": 1100, "duration": "300-500ms", "justification": "x"},
]
NESTED = [
    {
        "Coordinates": {"x": entry["x"], "y": entry["y"]},
        "Fixation Duration": entry["duration"],
        "Justification": entry["justification"],
    }
    for entry in DICTS
]
FORMS = {
    "json": json.dumps(DICTS),
    "json by name": json.dumps({f"fixation_{i}": entry for i, entry in enumerate(DICTS, 1)}),
    "json nested": json.dumps({"fixation_sequence": NESTED}),
    "json cut off": json.dumps([*DICTS, {"x": 1, "y": 2, "duration": "3 s"}])[:-30],
    "numbered": "1. (640, 400) - 300 ms - The face at (1, 2)\n2. (1021, 88) - 0.25 s - A sign\n"
    "3. (-5, 1100) - 300-500 ms - The edge",
    "headings": "Size (1280, 1024), origin (0, 0).\n\n### Fixation 1\n- **Coordinates:** (640, 400)\n"
    "- **Fixation Duration:** 300 ms\n- **Justification:** The face, not (3, 4).\n\n### Fixation 2\n"
    "- **Coordinates:** (1021, 88)\n- **Fixation Duration:** 0.25 seconds\n- **Justification:** A sign.\n\n"
    "### Fixation 3\n- **Coordinates:** (-5, 1100)\n- **Fixation Duration:** 400ms\n- **Justification:** ?",
    "two lines": "1. **Face**\n   - X: 640\n   - Y: 400\n   - Duration: 300 milliseconds\n2. **Sign**\n   - X: 1021\n"
    "   - Y: 88\n   - Duration: 250 milliseconds\n3. Edge\n   - X: -5\n   - Y: 1100\n   - Duration: 0.4 sec",
    "sentences": "First the viewer looks at (640, 400) for 300 ms. Then (1021, 88), for 250 ms. At last (-5, 1100), "
    "which takes 400 ms.",
    "csv": "fixation,x,y,duration,justification\n1,640,400,300,face\n2,1021,88,250,sign\n3,-5,1100,400,edge",
    "table": "| # | X | Y | Fixation Duration (ms) | Justification |\n|---|---|---|---|---|\n"
    "| 1 | 640 | 400 | 300 | face |\n| 2 | 1021 | 88 | 250 | sign |\n| 3 | -5 | 1100 | 400 | edge |",
    "no unit": "1. (640, 400), Duration: 300\n2. (1021, 88), Duration: 0.25\n3. (-5, 1100), Duration: 400",
}


@pytest.mark.parametrize("form", FORMS)
def test_scanpaths_are_read(form: str) -> None:
    assert read_scanpath(FORMS[form]) == PATH


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *itertools.product((read_color, read_objects, read_caption, read_scanpath), APOLOGIES),
        (read_color, "Options: red, pink, orange, yellow, purple, green, blue, brown, gray, black, white"),
        (read_color, "The tan tent stands on wheat coloured snow"),
        (read_objects, "a very long sentence that names no three things at all"),
        (read_scanpath, "The viewer looks at the face first, for 300 ms."),
        (read_scanpath, '{"fixations": []}'),
    ],
)
def test_what_is_no_answer_is_unparsable_and_kept(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(AnswerError) as caught:
        read(text)
    assert caught.value.code == "unparsable"
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("piece", ["[", "{", "1, ", "x: 1 ", "1. ", "*", '"', " ", "a, ", "(1,2) 3 ", "\n1"])
def test_long_texts_are_read_in_time(piece: str) -> None:
    """Under the limit for a test of 300 seconds; an expression that backtracks for ever is far beyond it."""
    text = (piece * READ)[:READ]
    for read in (read_color, read_objects, read_caption, read_scanpath):
        with contextlib.suppress(AnswerError):
            read(text)
