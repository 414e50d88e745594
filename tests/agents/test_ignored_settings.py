"""A setting that plays no part beside the others is refused, by name and with the condition under which it would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.errors import InputError
from agents.selection import checked_agents, resolve

# agent, settings among which one plays no part, its name, what makes it count
CASES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("git-large-coco", {"top_k": 5}, "top_k", {"decoding": "sample"}),
    ("git-large-coco", {"decoding": "sample", "beams": 7}, "beams", {"decoding": "beam"}),
    ("git-large-coco", {"beams": 1, "length_norm": "transformers"}, "length_norm", {"beams": 2}),
    ("blip-large", {"temperature": 0.5}, "temperature", {"decoding": "sample"}),
    ("blip2-opt-2.7b", {"decoding": "sample", "attempts": 3}, "attempts", {"reject": ["empty"]}),
    ("ofa-huge", {"top_p": 0.9}, "top_p", {"decoding": "sample"}),
    ("clipcap-transformer", {"length_penalty": 0.5}, "length_penalty", {"search": "transformers"}),
    ("llava-v1.6-mistral-7b", {"prompt": "Describe it.", "least_words": 6}, "least_words", {"prompt": "In {words}."}),
    ("gbvs", {"window_pixels": 50, "window": 90}, "window", {"window_pixels": None}),
    ("ivsn", {"search_size": 256}, "search_size", {"variant": "whole"}),
    ("ivsn", {"bottom_up": "relu4_3"}, "bottom_up", {"modulation": "none"}),
    ("ivsn-notarget", {"target_layer": "pool2"}, "target_layer", {"modulation": "target"}),
    ("eccnet", {"window_resized": 64, "window_pixels": 50}, "window_pixels", {"window_resized": None}),
    ("return-fixations", {"smoothing": 1.0}, "smoothing", {"saccades": "vectors"}),
    ("deepgaze3", {"choice": "sample", "inhibition": "gaussian"}, "inhibition", {"choice": "argmax"}),
    ("word2vec", {"rules": ["letters"], "overlap_limit": 0.5}, "overlap_limit", {"rules": ["overlap"]}),
    ("llama-3.1-8b", {"vllm": {"sequences": 8}}, "vllm", {"engine": "vllm"}),
    ("llama-3.1-8b", {"word_rules": {"rules": [], "known_words": 9}}, "word_rules.known_words", {"word_rules": {}}),
    ("llama-3.1-8b", {"rises_with": "attempt", "attempts": 1, "hottest": 0.7}, "hottest", {"attempts": 2}),
    ("gpt2-completion", {"temperature": 0, "retry_temperature": 0, "top_k": 5}, "top_k", {"temperature": 1}),
    ("openai-completion", {"attempts": 3, "turn_hottest": 0.9, "model": "m"}, "turn_hottest", {"attempts": 4}),
    ("openai-universal", {"reject": [], "caption_attempts": 2, "model": "m"}, "caption_attempts",
     {"reject": ["empty"]}),
    ("claude", {"send_temperature": False, "word_temperature": 0.5, "model": "m"}, "word_temperature",
     {"send_temperature": True}),
    ("catch", {"items": 8, "conversation": "repeat"}, "items", {"conversation": "list"}),
    ("svm", {"model": "forest", "kernel": "rbf"}, "kernel", {"model": "svm"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "field", "remedy"), CASES)
def test_what_plays_no_part_is_refused(name: str, given: dict[str, Any], field: str, remedy: dict[str, Any]) -> None:
    entry = catalogue.get(name)
    with pytest.raises(InputError) as caught:
        entry.make(given)
    assert [problem.field for problem in caught.value.problems] == [f"{name}.{field}"]
    assert "counts only with" in caught.value.problems[0].message
    entry.make({**given, **remedy})


@pytest.mark.parametrize("name", ["ivsn", "eccnet"])
def test_who_answers_search_alone_has_no_length_of_free_viewing(name: str) -> None:
    with pytest.raises(InputError, match="play no part"):
        catalogue.get(name).make({"max_free": 9})


@pytest.mark.parametrize("name", sorted(catalogue.entries()))
def test_conditions_are_of_settings_that_there_are_and_none_refuses_the_defaults(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    assert settings.counts.keys() <= settings.model_fields.keys()
    entry = catalogue.get(name)
    made = entry.make(
        {"model": "m"} if "model" in settings.model_fields and "base_url" in settings.model_fields else {}
    )
    entry.make(made.settings.model_dump())


def test_what_says_the_same_as_the_preset_is_taken() -> None:
    entry = catalogue.get("ivsn-notarget")
    entry.make({"modulation": "none", "target_layer": "pool5"})


def test_a_variant_of_a_file_is_held_to_it_too(tmp_path: Path) -> None:
    config = tmp_path / "agents.toml"
    config.write_text('[mine]\nagent = "ivsn"\nsearch_size = 256\n[whole]\nagent = "ivsn"\nvariant = "whole"\n')
    with pytest.raises(InputError) as caught:
        checked_agents(*resolve(["mine", "whole"], ["whole.search_size=300", "mine.bottom_up=relu4_3"], config))
    assert [problem.field for problem in caught.value.problems] == ["mine.search_size", "mine.bottom_up"]
