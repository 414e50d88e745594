"""``study.toml`` as `turinglike study new` writes it."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from agents.stimuli import Asked
from judging.study.design.tables import Exclude, Trials
from judging.trial_sets.choices import PRESETS, Preset

OF_TESTS = ("online", "interrogation")
"""The presets of live tests."""
Tables = tuple[dict[str, Any], dict[str, Any]]
FEEDBACK_PAGES: Mapping[Asked, tuple[int, int, float]] = {
    "image_captioning": (80, 40, 0.25),
    "word_association": (80, 40, 0.125),
    "conversation": (29, 16, 0.1),
    "color_estimation": (90, 40, 0.11),
    "object_detection": (81, 40, 0.11),
    "attention_prediction": (48, 24, 0.25),
}
"""By task: trials without catch trials, how many of the first are followed by the truth, catch trials as a share."""
BREAK = 25
"""Trials between breaks; the papers tell of none."""


def preset(name: str, task: Asked) -> Tables:
    """The tables ``trials`` and ``exclude`` of a preset; what they lack has the default of its field.

    ``plain`` is this project's own. ``2022`` and ``2025`` are those of the papers (Methods), and ``feedback`` is the
    study of learning in the 2025 paper (Table S2).
    """
    if name == "feedback":
        of_2025, exclude = preset("2025", task)
        prior = {"prior_told": task == "conversation"}  # Figure 7K, L256
        return of_2025 | prior | dict(zip(("number", "feedback", "catch"), FEEDBACK_PAGES[task], strict=True)), exclude
    trials: dict[str, Any] = {"number": PRESETS["2025"][task], "practice": 2, "catch": 0.1}
    if task == "attention_prediction":
        trials["play_once"] = True
    if task == "conversation":
        trials["choices"] = "both"
    if name == "plain":
        return trials, {}
    # Catch trials are the 2025 paper's alone, which prints no share of them.
    paper: Preset = "2022" if name == "2022" else "2025"
    trials |= {"number": PRESETS[paper][task], "practice": 0, "catch": 0.1 if name == "2025" else 0.0, "sample": False}
    trials["sex"] = task == "conversation" or (name == "2022" and task != "image_captioning")
    exclude = {"native": True} if name == "2025" else {}  # "only participants whose native language is English", L694
    match task:
        case "image_captioning":  # 2022: "response time < 3 s prevented"; 2025: "only response times over 3 s"
            trials["seconds_before"] = 3.0 if name == "2022" else 0.0
            if name == "2022":
                exclude["native"] = True
            else:
                exclude["fastest"] = 3.0
        case "color_estimation" | "object_detection":  # about an object; nobody was out by it
            trials["control"] = "object"
        case "attention_prediction":  # what is to be seen in the clip: fewer than 7 of 12 right are out
            trials["control"] = "object"
            exclude["controls"] = 7 / 12
        case "conversation":  # 15 of 20 topics; and the trials whose topic was wrong
            trials |= {"control": "topic", "choices": "both" if name == "2022" else "four"}
            exclude |= {"controls": 0.75, "wrong_control": True}
    return trials, exclude


def study_of_judges(
    trial_set: str, task: Asked, name: str, *, of_pairs: bool = False, changed: Mapping[str, Any] | None = None
) -> str:
    """The text of a study in which people judge trials.

    ``trial_set`` is its path, relative to the study. ``name`` is a preset, whose choices ``changed`` replaces.
    ``of_pairs`` says that trials show two conversations, for which there are no papers.
    """
    if of_pairs:
        trials: dict[str, Any] = {"number": 10, "practice": 2}
        exclude: dict[str, Any] = {}
    else:
        trials, exclude = preset(name, task)
    trials |= changed or {}
    trials["feedback"] = min(trials.get("feedback", 0), trials["number"] // 2)  # of a small set
    return _render(
        "judges.toml",
        preset=name,
        trial_set=_toml(trial_set),
        task=task,
        of_pairs=of_pairs,
        people="judges",
        screen=600 if task == "attention_prediction" else 0,
        break_every=BREAK if name == "plain" else 0,
        trials={key: _toml(value) for key, value in {**Trials(number=1).model_dump(), **trials}.items()},
        exclude={key: _toml(value) for key, value in {**Exclude().model_dump(), **exclude}.items()},
    )


def study_of_participants(stimulus_set: str, task: Asked, there: int | None = None) -> str:
    """The text of a study in which people answer a stimulus set.

    Each answers the usual number of stimuli, or all that are ``there`` if these are fewer; None: enough are there.
    """
    every = 0 if task == "conversation" else BREAK
    return _render("participants.toml", stimulus_set=_toml(stimulus_set), task=task, there=there, break_every=every)


def study_of_tests(name: str) -> str:
    """The text of a study of live tests.

    ``online`` has the 2025 paper's conditions, numbers of exchanges and lengths. ``interrogation`` has the minutes, and
    the tests of each participant, of Jones and Bergen (arXiv 2503.23674).
    """
    # With the tests' ids, which judges are sent, a seed that is known tells whose place is whose.
    return _render(f"{name}.toml", seed=secrets.randbelow(1 << 53), wanted=100, most=120)


def _toml(value: Any) -> str:
    # TOML writes text, numbers and truths as JSON does.
    return json.dumps(value, ensure_ascii=False)


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("judging.study"), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    every_study = {"people": "participants", "wanted": 50, "most": 60, "screen": 0, "break_every": 0}
    return environment.get_template(template).render(every_study | values)
