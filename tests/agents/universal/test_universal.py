"""The universal agent, on a server and here: its requests, the bytes of an image, and what becomes of replies."""

import base64
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage
from transformers import AutoProcessor

from agents.answers import ColorAnswer, WordAnswer
from agents.contract import Draw
from agents.errors import AnswerError
from agents.universal.universal import LocalUniversalAgent, ServerUniversalAgent
from agents.vision.picture_replies import read_caption
from serving.runs.records import Record
from tests.helpers import misbehaving_server as bad
from tests.helpers import tiny_captioners, tiny_language
from tests.helpers.misbehaving_server import KEY
from tests.helpers.task_stimuli import ROWS, picture, stimulus

WRONG = "sk-wrong.Key_9876543210-gfedcba"
SORRY = "I'm sorry, I can't assist with that."
TABLE = (
    "| # | X | Y | Fixation Duration (ms) | Justification |\n|---|---|---|---|---|\n"
    "| 1 | 640 | 400 | 300 | face |\n| 2 | 1021 | 88 | 250 | sign |\n| 3 | -5 | 1100 | 400 | edge |"
)


def answered(
    server: bad.Misbehaving, about: Any, draw: Draw | None = None, **settings: Any
) -> tuple[Any, dict[str, bool]]:
    """The reply to a stimulus, and whether each filter that fires rejects it."""
    return all_answered(server, about, [draw or Draw(seed=5)], **settings)[0]


def all_answered(
    server: bad.Misbehaving, about: Any, draws: Iterable[Draw], **settings: Any
) -> list[tuple[Any, dict[str, bool]]]:
    chosen = {"model": "m", "base_url": server.url, "timeout_s": 30.0, "retries": 0, **settings}
    agent = ServerUniversalAgent(ServerUniversalAgent.Settings.model_validate(chosen), "openai-universal")
    return bad.all_replies(agent, about, draws)


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
            "Coordinates(integer x indicating width ranging from 0 to 64, integer y indicating height ranging from 0 "
            "to 48): Approximate fixation position in the image.\n"
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
    assert base64.b64decode(image["image_url"]["url"].partition(",")[2]) == picture()
    assert (request.body["max_tokens"], request.body["temperature"], request.body["seed"]) == (tokens, 1.0, 5)
    assert {"frequency_penalty", "presence_penalty", "stop"}.isdisjoint(request.body)


def test_answers_are_typed_and_records_keep_the_text_with_its_cost(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer("**Teal**"), bad.answer("1. Cat\n2. Dog"), bad.answer("Butter."), bad.answer(SORRY)]
    color, _ = answered(server, stimulus("color_estimation"))
    assert color.answer == ColorAnswer(color="blue", css_name="teal")
    expected = {"text": "**Teal**", "prompt_tokens": 7, "tokens": 3, "model": "told-2026", "image": "original"}
    assert expected.items() <= color.raw.items()
    assert answered(server, stimulus("object_detection"))[0].answer.labels == ["cat", "dog"]
    word, _ = answered(server, stimulus("word_association"))
    assert [server.requests[-1].body.get(name) for name in ("temperature", "frequency_penalty")] == [1.0, None]
    assert word.answer == WordAnswer(word="butter", candidates=["butter"])
    none, verdicts = answered(server, stimulus("word_association"))
    assert (none.answer, none.raw["text"]) == (WordAnswer(word="", candidates=[]), SORRY)
    assert verdicts == {"no_word": True}


def test_a_captions_length_is_drawn_for_all_its_attempts(server: bad.Misbehaving) -> None:
    """MiscellaneousCode/Chatgpt-Caption.py of kreimanlab/TuringTest: one length, five tries, and the last is kept."""
    server.otherwise = lambda request: bad.answer("one two three four five six seven eight nine ten")
    draws = [Draw(9 * sample + attempt, sample, attempt) for sample in range(20) for attempt in (0, 3, 4)]
    replies = all_answered(server, stimulus("image_captioning"), draws, lengths=[3, 9, 12])
    limits: dict[int, set[int]] = {}
    for draw, (reply, verdicts), request in zip(draws, replies, server.requests[-len(draws) :], strict=True):
        body = request.body
        limit = reply.raw["max_words"]
        first, second, *_ = map(str.strip, body["messages"][0]["content"][0]["text"].splitlines())
        assert first.endswith("the important parts of the scene with a complete sentence or a cohesive fragment.")
        assert second == f"The description should contain at most {limit} words, at least 6 words."
        assert verdicts == ({"too_many_words": draw.attempt < 4} if limit < 10 else {})
        assert (body["max_tokens"], body["temperature"]) == (100, 1)
        limits.setdefault(draw.sample, set()).add(limit)
    assert all(len(of_sample) == 1 for of_sample in limits.values())
    assert set.union(*limits.values()) == {3, 9, 12}


@pytest.mark.parametrize(
    ("named", "most", "kept", "stop"), [(15, None, 15, "maximum"), (15, 4, 4, "maximum"), (3, 4, 3, "end")]
)
def test_as_many_fixations_as_the_stimulus_wants(
    server: bad.Misbehaving, named: int, most: int | None, kept: int, stop: str
) -> None:
    server.acts = [bad.answer("\n".join(f"{i}. ({i}, {i + 1})" for i in range(1, named + 1)))]
    reply, _ = answered(server, stimulus("attention_prediction", max_fixations=most))
    assert f"with {most or 15} fixations" in server.requests[0].body["messages"][0]["content"][0]["text"]
    assert reply.answer.fixations == [[i, i + 1] for i in range(1, kept + 1)]
    assert (reply.answer.stop, reply.answer.durations_ms) == (stop, None)


@pytest.mark.parametrize("task", ["color_estimation", "object_detection", "image_captioning", "attention_prediction"])
def test_what_is_no_answer_fails_with_the_text(server: bad.Misbehaving, task: str) -> None:
    server.acts = [bad.answer(SORRY), bad.answer("", finish_reason="content_filter")]
    for code in ("unparsable", "filtered"):
        with pytest.raises(AnswerError) as caught:
            answered(server, stimulus(task))
        assert caught.value.code == code
        assert ("I can't assist with that." in str(caught.value)) == (code == "unparsable")


def test_a_turn_is_asked_as_a_chat_between_two_friends(server: bad.Misbehaving) -> None:
    text = "Because it SWINGS. Ask anyone. And then some more words follow here."
    server.otherwise = lambda request: bad.answer(text)
    draw = Draw(5, attempt=3, options={"speaker": "A", "turn": 2})
    reply, verdicts = answered(server, stimulus("conversation"), draw)
    [request] = server.requests
    system, user = request.body["messages"]
    assert system["content"].startswith("Ann is dry and brief and is having a natural conversation")
    assert user["content"].endswith("\nA: Hi! \n:I like jazz\nBob:why?\nAnn:")
    drawn = {"temperature": 0.84, "frequency_penalty": 2.0, "presence_penalty": 2.0, "max_tokens": 80}
    assert {name: request.body[name] for name in drawn} == drawn
    assert text.lower().startswith(reply.answer.text.lower())
    assert verdicts == {}


# here

SHORT = {f"{name}_tokens": 12 for name in ("max", "color", "object", "caption", "scanpath")}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> list[LocalUniversalAgent]:
    """On a tiny model of pictures and texts, and on a model of texts."""
    root = tmp_path_factory.mktemp("universal")
    agents = []
    for folder in (tiny_captioners.llava_next(root / "a"), tiny_language.llama(root / "b", positions=2048)):
        settings = {"checkpoint": str(folder), "precision": "fp32", **SHORT}
        agents.append(LocalUniversalAgent(LocalUniversalAgent.Settings.model_validate(settings), "here"))
        assert agents[-1].missing() is None
        agents[-1].open()
        agents[-1].load("cpu")
    return agents


def test_a_model_here_is_asked_what_a_model_on_a_server_is(here: list[LocalUniversalAgent]) -> None:
    there = ServerUniversalAgent(ServerUniversalAgent.Settings.model_validate({"model": "m", **SHORT}), "there")
    there.open()
    for about in [stimulus(task, **({"type": "HM"} if task == "conversation" else {})) for task in ROWS]:
        for draw in (Draw(1, options={"speaker": "A"}), Draw(2, 3, 4, options={"speaker": "A"})):
            one, other = (agent.fitted_request(agent.prepare(about), draw) for agent in (here[0], there))
            assert one == other


def test_a_model_here_answers_all_tasks_in_a_batch_as_alone(here: list[LocalUniversalAgent]) -> None:
    agent = here[0]
    processor = AutoProcessor.from_pretrained(here[0].folder())
    items = [(agent.prepare(stimulus(task)), Draw(seed, options={"speaker": "A"})) for task in ROWS for seed in (1, 2)]
    together = agent.respond(*zip(*items, strict=True))
    alone = [agent.respond([item], [draw])[0] for item, draw in items]
    assert [*map(repr, together)] == [*map(repr, alone)]
    assert {reply.code for reply in together if isinstance(reply, AnswerError)} <= {"unparsable"}
    captions = [number for number, reply in enumerate(together) if hasattr(reply, "raw") and "max_words" in reply.raw]
    assert captions
    for reply, (item, draw) in ((together[number], items[number]) for number in captions):
        content = [{"type": "image"}, {"type": "text", "text": agent.fitted_request(item, draw).messages[0].text}]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
        [tokens] = processor(images=[PILImage.open(io.BytesIO(picture()))], text=text)["input_ids"]
        assert (reply.raw["prompt_tokens"], reply.answer.text) == (len(tokens), read_caption(reply.raw["text"]))


def test_a_model_of_texts_answers_words_and_messages_alone(here: list[LocalUniversalAgent]) -> None:
    assert [agent.reads_pictures() for agent in here] == [True, False]
    items = [here[1].prepare(stimulus(task)) for task in ROWS]
    replies = here[1].respond(items, [Draw(1, options={"speaker": "A"})] * len(items))
    assert [getattr(reply, "code", None) for reply in replies] == [*["no_images"] * 4, None, None]


# from the command to the records

AGENTS = ("openai-universal", "openai-chat")


def by_question(request: bad.Request) -> bad.Act:
    """A wrong key is refused, and sent back as is one kind of question."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return bad.echo(401)
    text = json.dumps(request.body["messages"][-1]["content"])
    if "[echo]" in text:
        return bad.echo(400)
    return bad.answer(SORRY if "[sorry]" in text else TABLE if "fixations" in text else "red, a cat sits on one mat")


def generate(folder: Path, rows: list[dict[str, Any]], settings: dict[str, Any]) -> Any:
    """`turinglike generate` in a process and a Ray of its own, with a planted key; its output and all that it wrote."""
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "a.png").write_bytes(picture())
    command = [sys.executable, "-m", "serving.cli", "generate", str(folder / "set.jsonl"), "--replicas", "1"]
    command += ["--agents", ",".join(AGENTS), "--out", str(folder / "run")]
    for name, value in settings.items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as ray:  # a socket's path must be short
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment |= {"OPENAI_API_KEY": KEY, "WRONG_KEY": WRONG, "TMPDIR": ray, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=240, cwd=Path(__file__).parents[3])
        left = [path for path in Path(ray).rglob("*") if path.is_file() and not path.is_symlink()]
    written = [path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()]
    return done, written, left


@pytest.mark.slow
def test_every_item_ends_as_a_record_and_the_key_in_none_of_them(tmp_path: Path) -> None:
    rows = [{"id": name, "task": "word_association", "cue": name} for name in ("echo", "sorry")]
    rows += [{"id": task, "task": task, **ROWS[task]} for task in ROWS if task != "conversation"]
    rows += [{"id": f"w{i}", "task": "word_association", "cue": f"cue{i}"} for i in range(20)]
    with bad.running() as running:
        running.otherwise = by_question
        chosen = {"model": "m", "base_url": running.url, "retries": 1, "attempts": 2}
        settings = {f"{name}.{key}": value for name in AGENTS for key, value in chosen.items()}
        done, written, left = generate(tmp_path, rows, {**settings, "openai-chat.key_variable": "WRONG_KEY"})
    assert done.returncode == 3, done.stderr.decode()
    served, wrong = (
        {record["stimulus"]: record for record in map(json.loads, path.read_text().splitlines())}
        for path in (tmp_path / "run" / "records" / f"{name}.jsonl" for name in AGENTS)
    )
    for record in (*served.values(), *wrong.values()):
        Record.model_validate(record)
    assert served.keys() == {row["id"] for row in rows}
    errors = {name: record["error"]["code"] for name, record in served.items() if record["error"]}
    assert errors == {"echo": "server_refused"}
    assert served["sorry"]["status"] == "rejected"
    assert served["image_captioning"]["status"] == "ok"
    path = served["attention_prediction"]["answer"]
    assert path["fixations"] == [[640, 400], [1021, 88], [-5, 1100]]  # off the frame, too
    assert (path["frame"], path["durations_ms"]) == ([64, 48], [300, 250, 400])
    # A wrong key ends its agent, with a record for each of the first twenty.
    assert [record["error"]["code"] for record in wrong.values()] == ["server_auth"] * 20
    assert b"agent openai-chat was stopped: its first 20 answers failed with server_auth" in done.stdout + done.stderr
    assert {request.headers["authorization"] for request in running.requests} == {f"Bearer {KEY}", f"Bearer {WRONG}"}
    assert left == []  # Ray's logs among it
    for text in (done.stdout, done.stderr, *written):
        assert not any(key.encode() in text or key[3:20].encode() in text for key in (KEY, WRONG))
