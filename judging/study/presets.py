"""``study.toml`` as `turinglike study new` writes it: every choice there, with what it means; the papers' numbers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.stimuli import Asked
from judging.study.settings import Trials
from judging.trials import PRESETS

WHAT: Mapping[Asked, str] = {
    "color_estimation": "a picture, and a word for its dominant colour",
    "object_detection": "a picture, and three objects in it",
    "attention_prediction": "eye movements: a yellow ring that goes over a picture as somebody's gaze did",
    "image_captioning": "a picture, and a sentence that describes it",
    "word_association": "a word, and the word that came to somebody's mind",
    "conversation": "a part of a conversation of two speakers, A and B",
}
WHICH = "Some were given by people, others by machines. Your task is to tell which."
PAIR = "two conversations beside each other, or their beginnings"
WHICH_OF_PAIR = "In one of them a machine speaks, in the other one people alone. Your task is to tell in which."


@dataclass(frozen=True, slots=True)
class Preset:
    """Choices that differ from the plain ones, by table and key."""

    trials: Mapping[str, Any]
    exclude: Mapping[str, Any]


def preset(name: str, task: Asked) -> Preset:
    """The choices of ``plain``, or of the papers of ``2022`` and ``2025`` (their Methods; facts of what they left open
    are the lab's to decide)."""
    plain: dict[str, Any] = {"number": PRESETS["2025"][task], "practice": 2, "catch": 0.1}
    exclude: dict[str, Any] = {"catch": 0.5}
    if task == "attention_prediction":
        plain["play_once"] = True
    if task == "conversation":
        plain["choices"] = "both"
    if name == "plain":
        return Preset(plain, exclude)
    trials: dict[str, Any] = {**plain, "number": PRESETS[name][task], "practice": 0, "catch": 0.0}
    exclude = {}
    match task:
        case "image_captioning":  # 2022: "response time < 3 s prevented"; 2025: "only response times over 3 s"
            trials["seconds_before"] = 3.0 if name == "2022" else 0.0
            exclude = {} if name == "2022" else {"fastest": 3.0}
        case "color_estimation" | "object_detection":  # about an object; nobody was out by it
            trials["control"] = "object"
        case "attention_prediction":  # what is to be seen in the clip: fewer than 7 of 12 right are out
            trials["control"] = "object"
            exclude = {"controls": 7 / 12}
        case "conversation":  # 15 of 20 topics; and the trials whose topic was wrong
            trials |= {"control": "topic", "choices": "both" if name == "2022" else "four"}
            exclude = {"controls": 0.75 if name == "2022" else 0.625, "wrong_control": True}
    if name == "2022" and task == "image_captioning":
        exclude = {"native": True}
    return Preset(trials, exclude)


def written(
    trial_set: str, task: Asked, name: str, *, of_pairs: bool = False, changed: Mapping[str, Any] | None = None
) -> str:
    """The text of ``study.toml``; ``of_pairs``: of conversations beside each other; ``changed`` are other choices of
    trials than the preset's, as :func:`fitting` has them."""
    chosen = Preset({"number": 10, "practice": 2}, {}) if of_pairs else preset(name, task)
    if changed:
        none_to_catch = {"catch": 0.0} if changed.get("catch") == 0 and "catch" in chosen.exclude else {}
        chosen = Preset({**chosen.trials, **changed}, {**chosen.exclude, **none_to_catch})
    trials = {"number": 0, "practice": 0, "feedback": 0, "catch": 0.0, "repeats": 0.0, "choices": "one",
              "seconds_before": 0.0, "play_once": False, "control": "", "prior_told": False, "confidence": False,
              "reason": False, "sample": True} | dict(chosen.trials)  # fmt: skip
    exclude = {"finished": True, "controls": 0.0, "catch": 0.0, "one_sided": False, "native": False,
               "fastest": 0.0, "wrong_control": False} | dict(chosen.exclude)  # fmt: skip
    values = {f"trials_{key}": _toml(value) for key, value in trials.items()}
    values |= {f"exclude_{key}": _toml(value) for key, value in exclude.items()}
    return TEMPLATE.format(
        preset=name, trial_set=_toml(trial_set), task=task, title=_toml("Human or machine?"), **values,
        what=PAIR if of_pairs else WHAT[task], which=WHICH_OF_PAIR if of_pairs else WHICH,
    )  # fmt: skip


def fitting(room: int, chosen: Trials, *, has_catch: bool) -> dict[str, Any]:
    """What must be other than ``chosen`` where a judge can have ``room`` trials."""
    found: dict[str, Any] = {} if has_catch or not chosen.catch else {"catch": 0.0}
    catch = chosen.catch if has_catch else 0.0
    if 0 < room < chosen.number + chosen.practice + round(catch * chosen.number):
        practice = min(chosen.practice, room // 5)
        found |= {"number": min(chosen.number, int((room - practice) / (1 + catch))), "practice": practice}
    return found


def written_for_participants(stimulus_set: str, task: Asked, most: int) -> str:
    """The text of ``study.toml`` where people answer a stimulus set, each at ``most`` so many stimuli."""
    begin, end = TEMPLATE.index("[questions]"), TEMPLATE.index("[trials]")
    questions, last = TEMPLATE[begin:end], TEMPLATE[TEMPLATE.index("[end]") : TEMPLATE.index("[exclude]")]
    talk = TALK if task == "conversation" else ""
    return (PARTICIPANTS + questions + ANSWERS + talk + last).rstrip().format(
        stimulus_set=_toml(stimulus_set), task=task, title=_toml(TITLES[task]), instructions=INSTRUCTIONS[task],
        number=min(NUMBERS[task], most),
    ) + "\n"  # fmt: skip


def written_for_online_tests() -> str:
    """The text of ``study.toml`` of online tests: the 2025 paper's conditions, numbers of exchanges and lengths."""
    people = TEMPLATE[TEMPLATE.index("[judges]") : TEMPLATE.index("[trials]")].replace("[judges]", "[participants]")
    people = people.replace("wanted = 50 ", "wanted = 100").replace("most = 60 ", "most = 120")
    end = TEMPLATE[TEMPLATE.index("[end]") : TEMPLATE.index("[exclude]")].replace("{{", "{").replace("}}", "}")
    own = Path(__file__).with_name("online").joinpath("study.toml").read_text("utf-8")
    # With the tests' ids, which judges are sent, a seed that is known tells whose place is whose.
    own = own.replace("seed = 0  ", f"seed = {secrets.randbelow(1 << 53)}  ")
    return own.replace("#PEOPLE\n", people).replace("#END\n", end.rstrip() + "\n")


def _toml(value: Any) -> str:
    """As TOML writes it, which for text, numbers and truths is as JSON does."""
    return json.dumps(value, ensure_ascii=False)


TEMPLATE = '''\
# A study: people judge whether a person or a machine gave an answer. Made with the preset {preset}.
# `turinglike study check` says whether all of it can be done; docs/studies.md tells more.
schema = "turinglike.study/1"
trial_set = {trial_set}   # the folder of `turinglike trials`; its key stands beside it
task = "{task}"
language = "en"
phrases = ""              # a TOML file with the pages' own words in another language

[texts]                   # an empty line begins a paragraph
title = {title}
# Yours to write: who you are, what is kept, whom to ask. Empty: the page is left out.
consent = """
You take part of your own will and may stop at any time.

What you answer is kept under a random code. Your address is not kept.
"""
instructions = """
In each trial you will see {what}. {which}

Feel free to use as much time as you need.
"""
thanks = "Thank you for taking part."

[judges]
wanted = 50               # who finish; then nobody new may begin
most = 60                 # who may have finished or be at it at one time: some will not finish
entry = "open"            # "links": by a link of one's own, see `turinglike study links`
reload = "resume"         # who loads the page again goes on; "restart": begins anew; "block": is out
hours = 2.0               # after which the trials of one who stays away go to others
worker = ""               # the address's parameter with a panel's id of the worker, such as PROLIFIC_PID

[questions]               # nobody must answer any of them
before = ["age", "gender", "education", "country", "native_language", "ai_experience"]
after = ["engaging", "difficult", "comments"]

[trials]                  # of each judge
number = {trials_number}
practice = {trials_practice}              # before them, told what was right; they do not count
feedback = {trials_feedback}              # so many of the first are told what was right
catch = {trials_catch}                # catch trials that come to it, as a share
repeats = {trials_repeats}              # trials that come a second time, as a share
choices = {trials_choices}           # of conversations: one speaker a page, "both", or which of "four" pairs
seconds_before = {trials_seconds_before}      # before one may answer
play_once = {trials_play_once}         # one may answer only when the clip has been seen once
control = {trials_control}              # question: "topic" of a conversation, "object" of a picture, or your own table
prior_told = {trials_prior_told}        # whether judges are told that half of the answers are people's
confidence = {trials_confidence}
reason = {trials_reason}
sample = {trials_sample}             # the instructions show an answer of a person and one of a machine
keys = ["f", "j"]         # the first is for human for every other judge

[end]
code = ""                 # that judges get at the end; empty: each their own
redirect = ""             # an address to go on to; {{code}} and {{worker}} are filled in

[exclude]                 # verdicts that do not count are marked, and told by rule; nothing is removed
finished = {exclude_finished}           # of judges who did not finish
controls = {exclude_controls}            # of judges with a smaller share of control questions right
catch = {exclude_catch}               # of judges who caught a smaller share of catch trials
one_sided = {exclude_one_sided}         # of judges who said the same in all trials
native = {exclude_native}            # of judges who did not say that the language is their first
fastest = {exclude_fastest}             # verdicts in fewer seconds
wrong_control = {exclude_wrong_control}     # verdicts beside a wrong control question
'''

NUMBERS: Mapping[Asked, int] = {
    "color_estimation": 25,
    "object_detection": 25,
    "image_captioning": 10,
    "word_association": 50,
    "attention_prediction": 0,
    "conversation": 1,
}
"""Objects: 25 pictures for each worker, words: 50 cues (2022 paper); captions: 2,290 of 229 people (2025 paper)."""
TITLES: Mapping[Asked, str] = {
    "color_estimation": "Name the color",
    "object_detection": "Name what you see",
    "image_captioning": "Describe what you see",
    "word_association": "Tell us what comes to your mind",
    "attention_prediction": "",
    "conversation": "A conversation",
}
INSTRUCTIONS: Mapping[Asked, str] = {
    "color_estimation": "What is the dominant color in each image?",
    "object_detection": "Name three objects that you see in each image, none twice, nor again in another image.",
    "image_captioning": """\
Describe all the important parts of the scene.

The description should contain at least 6 words.

Avoid making spelling errors in the description.

Do not describe unimportant details.

Do not use any special characters like !, #, $, etc.

Do not start the sentence with \u201cThere is\u201d or \u201cThere are\u201d.

Do not write your descriptions as \u201cAn image containing ...\u201d, \u201cA photo of ...\u201d, etc.

Do not describe things that might have happened in the future or past.

Do not use proper names for people.

Do not describe what a person in the image might say.""",
    "word_association": "Name a word that you associate with each word that you are shown.",
    "attention_prediction": "",
    "conversation": """\
You will converse with somebody. The page says whether you write in turn or whenever you like.

Chat as you would with a friend or with somebody whom you do not know. If the topic is sensitive to you, say so.""",
}
"""Captions: word for word as the 2025 paper prints them (Methods, L731-740)."""
PARTICIPANTS = '''\
# A study: people answer what agents are asked. `turinglike study check` says whether all of it can be done;
# docs/studies.md tells more.
schema = "turinglike.study/1"
stimulus_set = {stimulus_set}   # what `turinglike generate` reads
task = "{task}"
language = "en"
phrases = ""              # a TOML file with the pages' own words in another language

[texts]                   # an empty line begins a paragraph
title = {title}
# Yours to write: who you are, what is kept, whom to ask. Empty: the page is left out.
consent = """
You take part of your own will and may stop at any time.

What you answer is kept under a random code. Your address is not kept.
"""
instructions = """
{instructions}
"""
thanks = "Thank you for taking part."

''' + TEMPLATE[TEMPLATE.index("[judges]") : TEMPLATE.index("[questions]")].replace("[judges]", "[participants]")
ANSWERS = """\
[answers]                 # of each participant
number = {number}
checks = "tell"           # what the papers' form would refuse is to be answered anew; "note": it is kept with a flag

"""
TALK = """\
[talk]
agent = ""                # who converses with a share of the participants, see server
server = "http://127.0.0.1:8001/"   # a `turinglike serve --agents AGENT --port 8001` on this machine
machines = 0.0            # the probability with which two who wait get the agent each, and not each other
quiet_s = 5.0             # in a burst dialogue the agent is asked after so many seconds without a message
seconds_in_lobby = 300.0  # after which one is told that nobody came
seconds_away = 45.0       # after which one who is not heard of has left, and the conversation is void
guess = true              # it is asked afterwards whether the other one was a machine

[delays]                  # how long the agent takes over a message, in seconds; docs/language.md has the formula
base = 1.0
type_mean = 0.3           # for each letter that it writes, on average over messages
type_sd = 0.03
read_mean = 0.03          # for each letter that it reads
read_sd = 0.003
think_shape = 2.5         # of a gamma distribution
think_scale = 0.25

"""
