"""The stimulus models: what they take, what they refuse, and the one form that stands for a stimulus."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.images import Image
from agents.stimuli import ALL_TASKS, as_dict, canonical, parse_row, sha256
from tests.helpers import bad_images as corpus

COMMON: dict[str, Any] = {
    "id": "a/1.jpg",
    "benchmark_id": "0001.jpg",
    "source": "coco-val",
    "source_id": "000000001",
    "meta": {"text": "t", "whole": 3, "real": 0.5, "yes": True, "none": None},
}
FULL: dict[str, dict[str, Any]] = {
    "color_estimation": {"image": "i.jpg", "present": ["cat"], "absent": ["dog", "sky"]},
    "object_detection": {"image": "i.jpg", "present": ["cat"], "absent": ["dog", "sky"]},
    "image_captioning": {"image": "i.jpg", "present": ["cat"], "absent": ["dog"], "domain": "near"},
    "attention_prediction": {
        "image": "i.jpg",
        "present": ["cat"],
        "absent": ["dog"],
        "mode": "search",
        "dataset": "naturaldesign",
        "target_image": "t.png",
        "target_box": [1.0, 2.0, 30.5, 4.0],
        "target_mask": "m.png",
        "target_present": True,
        "window": 200,
        "max_fixations": 15,
        "pixels_per_degree": 32.5,
    },
    "word_association": {
        "cue": "happy",
        "version": "prompted",
        "examples": [["a bit", "Happy"], ["x;", "y"]],
        "word_class": "adjective",
        "frequency": 12.5,
    },
    "conversation": {
        "type": "HM",
        "mode": "burst",
        "topic": "music",
        "names": ["Ann", "Bob"],
        "personas": ["curious", "sarcastic"],
        "opener": "Hi!",
        "who_starts": "B",
        "exchanges": 12,
        "history": [{"speaker": "A", "text": "Hello", "at": 0.5}, {"speaker": "B", "text": ""}],
        "pseudo": {"topics": 3, "turns": 10},
    },
    "judgement": {
        "asked": "conversation",
        "shown": "s1",
        "question": "By whom?",
        "answer": {"messages": [{"speaker": "A", "text": "Hi"}]},
        "beside": {"messages": [{"speaker": "B", "text": "Well"}]},
        "image": "i.jpg",
        "target_image": "t.png",
        "clip": "c.gif",
        "cue": "happy",
        "examples": [["a bit", "Happy"]],
        "speaker": "A",
    },
}
LEAST: dict[str, dict[str, Any]] = {
    "color_estimation": {"image": "i.jpg"},
    "object_detection": {"image": "i.jpg"},
    "image_captioning": {"image": "i.jpg"},
    "attention_prediction": {"image": "i.jpg"},
    "word_association": {"cue": "happy"},
    "conversation": {},
    "judgement": {"asked": "color_estimation", "shown": "s1", "question": "By whom?", "answer": {"color": "red"}},
}


def full(task: str) -> dict[str, Any]:
    return {**COMMON, "task": task, **FULL[task]}


def least(task: str, **more: Any) -> dict[str, Any]:
    return {"id": "x", "task": task, **LEAST[task], **more}


def parse(row: dict[str, Any], **options: Any) -> Any:
    return parse_row(json.dumps(row), **options)


@pytest.mark.parametrize("task", ALL_TASKS)
def test_every_field_comes_back(task: str) -> None:
    stimulus = parse(full(task))
    assert stimulus.task == task
    assert as_dict(stimulus) == full(task)
    assert set(type(stimulus).model_fields) == set(full(task)), "a field that this test does not know"
    assert canonical(stimulus) == compact(full(task))
    assert parse_row(canonical(stimulus)) == stimulus


@pytest.mark.parametrize("task", ALL_TASKS)
def test_defaults_are_left_out_of_the_canonical_form(task: str) -> None:
    stimulus = parse(least(task))
    defaults = {
        name: field.get_default(call_default_factory=True, validated_data={})
        for name, field in type(stimulus).model_fields.items()
        if not field.is_required()
    }
    assert canonical(stimulus) == canonical(parse({**defaults, **least(task)})) == compact(least(task))


@pytest.mark.parametrize(("task", "field"), [(task, field) for task in ALL_TASKS for field in full(task)])
def test_no_field_takes_another_type(task: str, field: str) -> None:
    good = full(task)
    for value in (True, 7, 7.5, "text", ["text"], {"speaker": 1}, "1", "true"):
        if type(value) is type(good[field]) or (field in ("pixels_per_degree", "frequency") and value == 7):
            continue
        with pytest.raises(ValidationError):
            parse({**good, field: value})


@pytest.mark.parametrize(
    ("task", "change"),
    [
        ("attention_prediction", {"mode": "search"}),
        ("attention_prediction", {"target_image": "t.png"}),
        ("attention_prediction", {"target_box": [1, 2, 3, 4]}),
        ("attention_prediction", {"mode": "search", "target_box": [1, 2, 0, 4]}),
        ("attention_prediction", {"mode": "search", "target_box": [1, 2, 3]}),
        ("attention_prediction", {"window": 0}),
        ("attention_prediction", {"max_fixations": 0}),
        ("attention_prediction", {"pixels_per_degree": 0}),
        ("word_association", {"cue": " \t "}),
        ("word_association", {"cue": "x" * 201}),
        ("word_association", {"version": "prompted"}),
        ("word_association", {"examples": [["a"]]}),
        ("word_association", {"examples": [["a", "b"]] * 21}),
        ("conversation", {"names": ["A", "A "]}),
        ("conversation", {"exchanges": 0}),
        ("conversation", {"exchanges": 1001}),
        ("conversation", {"history": [{"speaker": "A", "text": "x", "at": -1}]}),
        ("conversation", {"history": [{"speaker": "Kate", "text": "x"}]}),
        ("conversation", {"names": ["Kate", "Tom"], "history": [{"speaker": "Maria", "text": "x"}]}),
        ("color_estimation", {"image": ""}),
        ("color_estimation", {"present": ["a", 1]}),
        ("color_estimation", {"meta": {"a": {"b": 1}}}),
        ("color_estimation", {"meta": {"a": 2**63}}),
        ("color_estimation", {"meta": {"a": math.nan}}),
        ("word_association", {"frequency": math.inf}),
    ],
)
def test_values_that_are_refused(task: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse(least(task, **change))


@given(st.text(max_size=210) | st.text("a./\\ \u202e🙂日", max_size=9))
def test_ids_by_the_rule_written_out(text: str) -> None:
    good = (
        1 <= len(text) <= 200
        and all(letter.isprintable() for letter in text)
        and "\\" not in text
        and not text.startswith("/")
        and not any(part == ".." for part in text.split("/"))
    )
    try:
        taken = parse(least("conversation", id=text)).id == text
    except ValidationError:
        taken = False
    assert taken == good


def compact(row: dict[str, Any]) -> bytes:
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode()


def hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_hash_is_that_of_the_image_or_of_the_canonical_form(tmp_path: Path) -> None:
    (tmp_path / "i.jpg").write_bytes(b"anything")
    for task in ("color_estimation", "object_detection", "image_captioning", "attention_prediction"):
        assert sha256(parse(least(task, meta={"a": 1}), root=tmp_path)) == hashed(b"anything")
    assert sha256(parse(least("color_estimation"), files={"i.jpg": b"anything"})) == hashed(b"anything")
    for task in ("word_association", "conversation"):
        assert sha256(parse(full(task))) == hashed(compact(full(task)))


def test_the_hash_of_several_images_has_their_hashes_in_their_places() -> None:
    content = {"i.jpg": b"one", "t.png": b"two", "m.png": b"three"}
    row = full("attention_prediction")
    fields = ("image", "target_image", "target_mask")
    written = row | {field: hashed(content[row[field]]) for field in fields}
    reference = hashed(compact(written))
    assert sha256(parse(row, files=content)) == reference
    moved = row | {field: f"moved_{row[field]}" for field in fields}
    assert sha256(parse(moved, files={f"moved_{name}": data for name, data in content.items()})) == reference


def test_images_come_in_one_order_and_from_the_given_bytes() -> None:
    files = {"i.jpg": corpus.jpeg_bytes(), "t.png": b"", "m.png": b""}
    stimulus = parse(full("attention_prediction"), files=files)
    assert [image.name for image in stimulus.images()] == ["i.jpg", "t.png", "m.png"]
    assert stimulus.images()[0].decode().shape == (corpus.HEIGHT, corpus.WIDTH, 3)
    assert isinstance(stimulus.image, Image)
    assert parse(least("conversation")).images() == []
