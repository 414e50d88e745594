"""The universal agent: what it asks, how it reads what models say, and which bytes of an image it sends."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import misbehaving_server as bad
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PILImage

from agents.answers import ColorAnswer, TurnAnswer, WordAnswer
from agents.contract import Draw
from agents.errors import AnswerError
from agents.images import Image
from agents.language.openai_chat import OpenAICompletionAgent
from agents.stimuli import parse_row
from agents.universal.openai_universal import READ, SENT, UniversalAgent, UniversalSettings
from agents.universal.prompts import read_caption, read_color, read_objects
from agents.universal.scanpath_replies import Fixation, duration_ms, read_scanpath
from serving.runs.records import Record

KEY = "sk-planted.Key_0123456789-abcdefg"
WRONG = "sk-wrong.Key_9876543210-gfedcba"
APOLOGIES = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I cannot see the image you are referring to. Red or blue, perhaps?",
    "Sorry, I can't identify the objects, people or places in this picture.",
    "**I cannot assist with this request.**",
    "Unfortunately, I am unable to view images directly.",
    "As an AI language model, I do not see a cat, a dog or a lamp.",
    "I don't have the ability to see (100, 200) or any other place.",
    "Please upload the image.",
    "",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Blue", ("blue", None)),
        (" **Green** \n", ("green", None)),
        ("Grey", ("gray", None)),
        ("The dominant color in this picture is brown.", ("brown", None)),
        ("There is some red, but the dominant colour is clearly white.", ("white", None)),
        ("Blue-green", ("green", None)),
        ("black and white", ("black", None)),
        ("Yellow, with orange", ("yellow", None)),
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
        "1. Cat 2. Sofa 3. Lamp",
        "- cat\n- sofa\n- lamp",
        "Cat\nSofa\nLamp",
        "Cat Sofa Lamp",
        "cat / sofa / lamp",
        "I see a cat, a sofa, and a lamp.",
        "The three objects are: cat, sofa, lamp",
        "Here are three one-word responses:\n\n1. Cat\n2. Sofa\n3. Lamp",
        "Sure! Three objects: **Cat**, **Sofa**, **Lamp**",
        '```json\n["Cat", "Sofa", "Lamp"]\n```',
        '{"objects": ["cat", "sofa", "lamp"]}',
        '{"object1": "cat", "object2": "sofa", "object3": "lamp"}',
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
        ("Cat", ["cat"]),
        ("traffic light, bus, stop sign", ["traffic light", "bus", "stop sign"]),
        ("cat, dog", ["cat", "dog"]),
    ],
)
def test_fewer_objects_and_objects_of_two_words_are_taken_as_they_are(text: str, expected: list[str]) -> None:
    assert read_objects(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man rides a horse.", "A man rides a horse."),
        ('"A man rides a horse."', "A man rides a horse."),
        ("“A man rides\na horse.”", "A man rides a horse."),
        ("Caption: A man rides a horse.", "A man rides a horse."),
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
        "Coordinates": {"x": one["x"], "y": one["y"]},
        "Fixation Duration": one["duration"],
        "Justification": one["justification"],
    }
    for one in DICTS
]
FORMS = {
    "json": json.dumps(DICTS),
    "json in a fence": f"Here you go:\n```json\n{json.dumps(DICTS, indent=2)}\n```\nHope it helps!",
    "json by name": json.dumps({f"fixation_{i}": one for i, one in enumerate(DICTS, 1)}),
    "json nested": json.dumps({"fixation_sequence": NESTED}),
    "json pairs": json.dumps(
        [{"Coordinates": [one["x"], one["y"]], "duration": one["duration"], "why": "x"} for one in DICTS]
    ),
    "json strings": json.dumps(
        [{"Coordinates": f"({one['x']}, {one['y']})", "Fixation Duration": one["duration"]} for one in DICTS]
    ),
    "json of texts": json.dumps([{**one, "x": str(one["x"]), "y": f"{one['y']}px"} for one in DICTS]),
    "json rows": json.dumps([[one["x"], one["y"], one["duration"], "why"] for one in DICTS]),
    "json, durations first": json.dumps([{"duration": one["duration"], **one} for one in DICTS]),
    "json by name, durations first": json.dumps(
        {
            f"f_{i}": {"Fixation Duration": one["duration"], "at": {"x": one["x"], "y": one["y"]}}
            for i, one in enumerate(DICTS)
        }
    ),
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
    "lines": "640, 400, 300 ms, face\n1021, 88, 250 ms, sign\n-5, 1100, 400 ms, edge",
    "csv": "fixation,x,y,duration,justification\n1,640,400,300,face\n2,1021,88,250,sign\n3,-5,1100,400,edge",
    "table": "| # | X | Y | Fixation Duration (ms) | Justification |\n|---|---|---|---|---|\n"
    "| 1 | 640 | 400 | 300 | face |\n| 2 | 1021 | 88 | 250 | sign |\n| 3 | -5 | 1100 | 400 | edge |",
    "table of pairs": "| Fixation | Coordinates | Duration | Why |\n|---|---|---|---|\n"
    "| 1 | (640, 400) | 300 ms | face |\n| 2 | (1021, 88) | 250 ms | sign |\n| 3 | (-5, 1100) | 400 ms | edge |",
    "tuples": "fixations = [\n    (640, 400, '300 ms', 'face'),\n    (1021, 88, '250 ms', 'sign'),\n"
    "    (-5, 1100, '400 ms', 'edge'),\n]",
    "no unit": "1. (640, 400), Duration: 300\n2. (1021, 88), Duration: 0.25\n3. (-5, 1100), Duration: 400",
}


@pytest.mark.parametrize("form", FORMS)
def test_scanpaths_are_read(form: str) -> None:
    assert read_scanpath(FORMS[form]) == PATH


def test_fifteen_numbered_fixations_are_fifteen_whatever_numbers_the_reasons_have() -> None:
    lines = [
        f"{i}. **Place {i}** ({10 * i}, {20 * i}) - {100 + i} ms: near (5, 5), 3 people, 2 s" for i in range(1, 16)
    ]
    assert read_scanpath("\n".join(lines)) == [Fixation(10 * i, 20 * i, 100 + i) for i in range(1, 16)]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *itertools.product((read_color, read_objects, read_caption, read_scanpath), APOLOGIES),
        (read_color, "dog"),
        (read_color, "Options: red, pink, orange, yellow, purple, green, blue, brown, gray, black, white"),
        (read_color, "The tan tent stands on wheat coloured snow"),
        (read_objects, "1. \n2. \n3. "),
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("300", 300),
        ("0.3s", 300),
        ("200–400 ms", 300),
        ("0.2 to 0.4 seconds", 300),
        ("20", 20_000),
        ("21", 21),
        ("long", None),
    ],
)
def test_durations(value: str, expected: float | None) -> None:
    assert duration_ms(value) == expected


# abuse


@given(st.text(alphabet="[]{}()\"':,.-*#|\n 0123456789xyXYms redCue;", max_size=400))
def test_no_text_is_more_than_a_reader_can_take(text: str) -> None:
    for read in (read_color, read_objects, read_caption, read_scanpath):
        with contextlib.suppress(AnswerError):
            assert read(text)


@pytest.mark.parametrize("piece", ["[", "{", "1, ", "x: 1 ", "1. ", "*", '"', " ", "a, ", "(1,2) 3 ", "\n1"])
def test_long_texts_are_read_in_time(piece: str) -> None:
    """Under the limit for a test of 300 seconds; an expression that backtracks for ever is far beyond it."""
    text = (piece * READ)[:READ]
    for read in (read_color, read_objects, read_caption, read_scanpath):
        with contextlib.suppress(AnswerError):
            read(text)


# images


def picture() -> PILImage.Image:
    noise = np.random.default_rng(3).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    return PILImage.fromarray(noise)


def saved(image: PILImage.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def exif(orientation: int) -> bytes:
    found = PILImage.Exif()
    found[0x0112] = orientation
    return found.tobytes()


def with_hole() -> PILImage.Image:
    image = picture().convert("RGBA")
    image.putalpha(PILImage.fromarray(np.tile(np.array([255, 0], np.uint8), (24, 20))))
    return image


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (saved(picture(), "PNG"), "original"),
        (saved(picture(), "JPEG"), "original"),
        (saved(picture().quantize(16), "GIF"), "original"),
        (saved(picture(), "JPEG", exif=exif(6)), "png"),
        (saved(picture(), "PNG", exif=exif(8)), "png"),
        (saved(with_hole(), "PNG"), "png"),
        (saved(picture().convert("I;16"), "PNG"), "png"),
        (saved(picture(), "BMP"), "png"),
        (saved(picture().quantize(16), "GIF", save_all=True, append_images=[PILImage.new("P", (40, 24))]), "png"),
    ],
)
def test_what_is_sent_shows_any_plain_decoder_what_everything_here_sees(data: bytes, expected: str) -> None:
    image = Image("x", data=data)
    sent, kind, frame = image.sendable(SENT)
    assert kind == expected
    assert (sent == data) == (kind == "original")
    seen = np.asarray(PILImage.open(io.BytesIO(sent)).convert("RGB"))
    assert np.array_equal(seen, image.decode())
    assert frame == (seen.shape[1], seen.shape[0])


# the agent


STIMULI: dict[str, dict[str, Any]] = {
    "color_estimation": {"image": "a.png"},
    "object_detection": {"image": "a.png"},
    "image_captioning": {"image": "a.png"},
    "attention_prediction": {"image": "a.png"},
    "word_association": {"cue": "bread"},
    "conversation": {
        "names": ["Ann", "Bob"],
        "personas": ["dry and brief", "loud and proud"],
        "topic": "music",
        "history": [{"speaker": "Ann", "text": "I like jazz"}, {"speaker": "Bob", "text": "why?"}],
    },
}


def stimulus(task: str, **changes: Any) -> Any:
    row = {"id": "s", "task": task, **STIMULI[task], **changes}
    return parse_row(json.dumps(row), files={"a.png": saved(picture(), "PNG")})


def answered(
    server: bad.Misbehaving, asked: Any, draw: Draw | None = None, **settings: Any
) -> tuple[Any, UniversalAgent]:
    """The reply to one stimulus, as the runner would ask for it."""
    chosen = {"model": "m", "base_url": server.url, "timeout_s": 30.0, "retries": 0, **settings}
    agent = UniversalAgent(UniversalSettings.model_validate(chosen), "openai-universal")

    async def main() -> Any:
        agent.open()
        agent.load("cpu")
        try:
            return await agent.respond_one(agent.prepare(asked), draw or Draw(seed=5))
        finally:
            await agent.aclose()

    return asyncio.run(main()), agent


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[bad.Misbehaving]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with bad.running() as told:
        yield told


def verdicts(agent: UniversalAgent, asked: Any, reply: Any) -> dict[str, bool]:
    return {found.filter: found.rejected for test in agent.filters if (found := test(asked, reply)) is not None}


@pytest.mark.parametrize(
    ("task", "prompt", "tokens"),
    [
        (
            "color_estimation",
            "What is the dominant color in this picture? Select from the options: red, pink, orange, yellow, purple, "
            "green, blue, brown, gray, black, white. Provide your answer with only one word.",
            20,
        ),
        (
            "object_detection",
            "What objects do you see in this image? Please provide 3 different one-word responses.",
            50,
        ),
        (
            "attention_prediction",
            "Identify objects and regions that would attract a human's gaze during a natural viewing of the scene. "
            "Predict the sequence with 15 fixations a typical observer might make, explaining why each fixation "
            "occurs. The output should be formatted as a structured fixation sequence, where each fixation includes "
            "the following attributes:\n"
            "Coordinates(integer x indicating width ranging from 0 to 40, integer y indicating height ranging from 0 "
            "to 24): Approximate fixation position in the image.\n"
            "Fixation Duration(string): The estimated time spent fixating on this object.\n"
            "Justification(string): A short explanation of why this object or region attracted attention.\n",
            1024,
        ),
    ],
    ids=["colour", "objects", "scanpath"],
)
def test_images_are_asked_about_in_the_papers_words(
    server: bad.Misbehaving, task: str, prompt: str, tokens: int
) -> None:
    """Of kreimanlab/TuringTest, MiscellaneousCode: Chatgpt-ColorEst.py, -ObjectDet.py and -FreeViewing.py."""
    server.acts = [bad.answer("red 1. (1, 2)")]
    answered(server, stimulus(task), image_detail="high")
    [request] = server.requests
    [message] = request.body["messages"]
    text, image = message["content"]
    assert (text["text"], image["image_url"]["detail"]) == (prompt, "high")
    assert base64.b64decode(image["image_url"]["url"].partition(",")[2]) == saved(picture(), "PNG")
    assert (request.body["max_tokens"], request.body["temperature"], request.body["seed"]) == (tokens, 1.0, 5)
    assert {"frequency_penalty", "presence_penalty", "stop"}.isdisjoint(request.body)


def test_word_association_is_asked_in_a_sentence(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer("Butter.")]
    reply, _ = answered(server, stimulus("word_association"))
    expected = "Name a word that you associate with [bread]. Please provide your answer with only one word."
    assert server.requests[0].body["messages"] == [{"role": "user", "content": expected}]
    assert server.requests[0].body["max_tokens"] == 10
    assert reply.answer == WordAnswer(word="butter", candidates=["butter"])
    assert reply.raw["text"] == "Butter."


def test_answers_are_typed_and_what_was_said_is_kept_with_its_cost(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer("**Teal**"), bad.answer("1. Cat\n2. Dog")]
    color, _ = answered(server, stimulus("color_estimation"))
    assert color.answer == ColorAnswer(color="blue", css_name="teal")
    assert color.raw == {
        "text": "**Teal**",
        "finish": "stop",
        "prompt_tokens": 7,
        "tokens": 3,
        "model": "told-2026",
        "fingerprint": "fp_1",
        "tries": 1,
        "image": "original",
    }
    asked = stimulus("object_detection")
    objects, agent = answered(server, asked)
    assert objects.answer.labels == ["cat", "dog"]
    assert verdicts(agent, asked, objects) == {"fewer_objects": False}


def test_a_captions_length_is_drawn_told_and_kept_to(server: bad.Misbehaving) -> None:
    """MiscellaneousCode/Chatgpt-Caption.py of kreimanlab/TuringTest: one length, five tries, and what the last said."""
    asked = stimulus("image_captioning")
    limits = set()
    for sample in range(20):
        told = []
        for attempt in (0, 3, 4):
            server.acts = [bad.answer("one two three four five six seven eight nine ten")]
            reply, agent = answered(server, asked, Draw(9 * sample + attempt, sample, attempt), lengths=[3, 9, 12])
            request, limit = server.requests[-1].body, reply.raw["max_words"]
            prompt = request["messages"][0]["content"][0]["text"]
            first, second, *_ = (line.strip() for line in prompt.splitlines())
            assert first.endswith("the important parts of the scene with a complete sentence or a cohesive fragment.")
            assert second == f"The description should contain at most {limit} words, at least 6 words."
            assert verdicts(agent, asked, reply) == ({"too_many_words": attempt < 4} if limit < 10 else {})
            assert request["max_tokens"] == 100
            assert request["temperature"] == 1  # what servers take where none is sent
            told.append(limit)
        limits |= set(told)
        assert len(set(told)) == 1
    assert limits == {3, 9, 12}


def test_a_scanpath_keeps_points_off_the_frame_and_says_what_is_odd(server: bad.Misbehaving) -> None:
    asked = stimulus("attention_prediction")
    server.acts = [bad.answer(FORMS["json"])]
    reply, agent = answered(server, asked)
    assert reply.answer.fixations == [[640, 400], [1021, 88], [-5, 1100]]
    assert reply.answer.frame == [40, 24]
    assert reply.answer.durations_ms == [300, 250, 400]
    assert reply.answer.stop == "end"
    assert reply.raw["text"] == FORMS["json"]
    assert verdicts(agent, asked, reply) == {"off_frame": False, "fewer_fixations": False}


@pytest.mark.parametrize(
    ("said", "most", "kept", "stop", "noted"),
    [
        (15, None, 15, "maximum", set()),
        (15, 4, 4, "maximum", {"more_fixations"}),
        (3, 4, 3, "end", {"fewer_fixations"}),
        (4, 4, 4, "maximum", set()),
    ],
)
def test_as_many_fixations_as_asked_for(
    server: bad.Misbehaving, said: int, most: int | None, kept: int, stop: str, noted: set[str]
) -> None:
    asked = stimulus("attention_prediction", max_fixations=most)
    server.acts = [bad.answer("\n".join(f"{i}. ({i}, {i + 1})" for i in range(1, said + 1)))]
    reply, agent = answered(server, asked)
    assert f"with {most or 15} fixations" in server.requests[0].body["messages"][0]["content"][0]["text"]
    assert reply.answer.fixations == [[i, i + 1] for i in range(1, kept + 1)]
    assert (reply.answer.stop, reply.answer.durations_ms) == (stop, None)
    assert verdicts(agent, asked, reply).keys() == noted | {"no_durations"}


@pytest.mark.parametrize("task", ["color_estimation", "object_detection", "image_captioning", "attention_prediction"])
def test_what_is_no_answer_fails_with_the_text(server: bad.Misbehaving, task: str) -> None:
    server.acts = [bad.answer("I'm sorry, I can't assist with that."), bad.answer("", finish_reason="content_filter")]
    with pytest.raises(AnswerError) as caught:
        answered(server, stimulus(task))
    assert caught.value.code == "unparsable"
    assert "I can't assist with that." in str(caught.value)
    with pytest.raises(AnswerError) as caught:
        answered(server, stimulus(task))
    assert caught.value.code == "filtered"


def test_a_reply_without_a_word_is_rejected_with_its_text(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer("I'm sorry, I can't assist with that.")]
    asked = stimulus("word_association")
    reply, agent = answered(server, asked)
    assert reply.answer == WordAnswer(word="", candidates=[])
    assert reply.raw["text"] == "I'm sorry, I can't assist with that."
    assert verdicts(agent, asked, reply) == {"no_word": True}


def test_a_turn_is_asked_as_a_chat_between_two_friends(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer("Because it SWINGS. Ask anyone. And then some more words follow here.")]
    asked = stimulus("conversation")
    reply, agent = answered(server, asked, Draw(5, attempt=5, options={"speaker": "A", "turn": 2}))
    body = server.requests[0].body
    system, user = body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].startswith("Ann is dry and brief and is having a natural conversation")
    assert user["content"].startswith("Bob is loud and proud and is having a natural conversation")
    assert user["content"].endswith("\nA: Hi! \n:I like jazz\nBob:why?\nAnn:")
    assert (body["temperature"], body["frequency_penalty"], body["presence_penalty"]) == (1.0, 2.0, 2.0)
    assert (body["max_tokens"], body["stop"]) == (80, ["Ann:", "Bob:"])
    assert type(reply.answer) is TurnAnswer
    assert reply.answer.raw == "Because it SWINGS. Ask anyone. And then some more words follow here."
    assert reply.answer.raw.lower().startswith(reply.answer.text.lower())
    assert (reply.raw["tokens"], reply.raw["attempt"]) == (3, 5)
    assert verdicts(agent, asked, reply) == {}


def test_short_messages_are_asked_for_again_a_little_warmer(server: bad.Misbehaving) -> None:
    asked = stimulus("conversation")
    server.otherwise = lambda request: bad.answer("Four words it has.")
    for attempt in (0, 3, 5):
        reply, agent = answered(server, asked, Draw(attempt, attempt=attempt, options={"speaker": "A", "turn": 2}))
        assert verdicts(agent, asked, reply) == {"too_few_words": attempt < 5}
    assert [request.body["temperature"] for request in server.requests] == [0.6, 0.84, 1.0]
    server.acts = [bad.answer(" … ")]
    reply, agent = answered(server, asked, Draw(1, attempt=5, options={"speaker": "A", "turn": 2}))
    assert verdicts(agent, asked, reply) == {"too_few_words": True}


def test_messages_are_cut_to_drawn_lengths_and_half_are_in_small_letters(server: bad.Misbehaving) -> None:
    said = "Yes. I Think So too. " * 12
    server.otherwise = lambda request: bad.answer(said)
    draws = [Draw(seed, options={"speaker": "B", "turn": 2}) for seed in range(20)]
    texts = [answered(server, stimulus("conversation"), draw)[0].answer.text for draw in draws]
    assert 3 <= sum(text == text.lower() for text in texts) <= 17
    assert len({len(text.split()) for text in texts}) > 5
    assert all(text.endswith(".") and said.lower().startswith(text.lower()) for text in texts)


def test_a_completion_model_continues_the_papers_prompt(server: bad.Misbehaving) -> None:
    agent = OpenAICompletionAgent(OpenAICompletionAgent.Settings(model="m", base_url=server.url), "x")
    examples = [["easy", "form"], ["business", "money"], ["future", "base"]]
    server.acts = [bad.answer(" It is. Bob: no"), bad.answer(" butter Cue: x")]

    async def main() -> list[Any]:
        agent.open()
        turn = await agent.respond_one(stimulus("conversation"), Draw(1, options={"speaker": "A", "turn": 2}))
        word = await agent.respond_one(stimulus("word_association", version="prompted", examples=examples), Draw(1))
        await agent.aclose()
        return [turn, word]

    turn, word = asyncio.run(main())
    # The program's six tries: three at the first temperature, three warmer.
    assert [agent.settings.turn_sampling(attempt).temperature for attempt in range(6)] == [0.8] * 3 + [1.0] * 3
    first, second = server.requests
    assert first.path == "/v1/completions"
    assert first.body["prompt"] == (
        "Bob greets Ann. Ann starts to talk about music. Both ask long questions, give long responses and often "
        "disagree. Then the topic changes. The conversation never ends. Bob: Hi! Ann: I like jazz Bob: why? Ann:"
    )
    assert (first.body["temperature"], first.body["max_tokens"], first.body["stop"]) == (0.8, 60, ["Ann:", "Bob:"])
    assert turn.answer.text == "It is."
    assert second.body["prompt"].endswith("Cue: future; Guess: base Cue: bread; Guess:")
    assert word.answer.word == "butter"


# the whole way


def by_question(request: bad.Request) -> bad.Act:
    """A wrong key is refused, and sent back as is one kind of question."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return bad.echo(401)
    text = json.dumps(request.body["messages"][-1]["content"])
    if "associate with [echo]." in text:
        return bad.echo(400)
    if "associate with [sorry]." in text:
        return bad.answer("I'm sorry, I can't assist with that.")
    return bad.answer(FORMS["table"] if "fixations" in text else "red, a cat, a dog sit on one mat")


def generate(folder: Path, rows: list[dict[str, Any]], settings: dict[str, Any]) -> Any:
    """`turinglike generate` in a process and a Ray of its own, with a planted key; its output and all that it wrote."""
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "a.png").write_bytes(saved(picture(), "PNG"))
    command = [sys.executable, "-m", "serving.cli", "generate", str(folder / "set.jsonl"), "--replicas", "1"]
    command += ["--agents", "openai-universal,openai-chat", "--out", str(folder / "run")]
    for name, value in settings.items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as ray:  # a socket's path must be short
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment |= {"OPENAI_API_KEY": KEY, "WRONG_KEY": WRONG, "TMPDIR": ray, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=240, cwd=Path(__file__).parents[3])
        left = [path for path in Path(ray).rglob("*") if path.is_file() and not path.is_symlink()]
    written = [path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()]
    return done, written, left


def test_every_item_ends_as_a_record_and_the_key_in_none_of_them(tmp_path: Path) -> None:
    rows = [{"id": name, "task": "word_association", "cue": name} for name in ("echo", "sorry")]
    rows += [{"id": task, "task": task, **STIMULI[task]} for task in STIMULI if task != "conversation"]
    rows += [{"id": f"w{i}", "task": "word_association", "cue": f"cue{i}"} for i in range(30)]
    with bad.running() as told:
        told.otherwise = by_question
        settings: dict[str, Any] = {"openai-chat.key_variable": "WRONG_KEY"}
        for name in ("openai-universal", "openai-chat"):
            settings |= {
                f"{name}.model": "m",
                f"{name}.base_url": told.url,
                f"{name}.retries": 1,
                f"{name}.attempts": 2,
            }
        done, written, left = generate(tmp_path, rows, settings)
    assert done.returncode == 3, done.stderr.decode()
    served, wrong = (
        {record["stimulus"]: record for record in map(json.loads, path.read_text().splitlines())}
        for path in (tmp_path / "run" / "records" / f"{name}.jsonl" for name in ("openai-universal", "openai-chat"))
    )
    for record in (*served.values(), *wrong.values()):
        Record.model_validate(record)
    assert served.keys() == {row["id"] for row in rows}
    assert {name: record["error"]["code"] for name, record in served.items() if record["error"]} == {
        "echo": "server_refused"
    }
    assert served["sorry"]["status"] == "rejected"
    assert served["image_captioning"]["status"] == "ok"
    assert served["attention_prediction"]["answer"]["fixations"] == [[640, 400], [1021, 88], [-5, 1100]]
    assert (served["w3"]["raw"]["prompt_tokens"], served["w3"]["raw"]["tokens"]) == (7, 3)
    # A wrong key ends its agent, with a record for each of the first twenty.
    assert [record["error"]["code"] for record in wrong.values()] == ["server_auth"] * 20
    assert b"agent openai-chat was stopped: its first 20 answers failed with server_auth" in done.stdout + done.stderr

    assert {request.headers["authorization"] for request in told.requests} == {f"Bearer {KEY}", f"Bearer {WRONG}"}
    assert left == []  # Ray's logs among it
    for text in (done.stdout, done.stderr, *written):
        assert not any(key.encode() in text or key[3:20].encode() in text for key in (KEY, WRONG))
