"""Judge a turn or a whole conversation: every filter that a policy has on, and what follows from what it found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from agents.contract import Verdict
from agents.language.filters import messages as of_message
from agents.language.filters import repetition
from agents.language.filters.farewells import early_exit
from agents.language.filters.repetition import Finding
from agents.language.filters.settings import FILTERS, Action, FilterName, FilterSettings, Policy

THRESHOLDS = FilterSettings()
NO_PROMPTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one filter found and what the policy asks for. ``turns`` are the places (from 0, earlier history included)
    of the messages in which it came true; ``found`` is what it says of the one with the most of it, and of the last of
    those."""

    filter: FilterName
    action: Action
    found: str
    turns: tuple[int, ...]

    @property
    def rejected(self) -> bool:
        """Whether something is to be sampled again."""
        return self.action in ("resample_turn", "resample_conversation")

    def verdict(self) -> Verdict:
        """The same as a filter's verdict on a reply."""
        return Verdict(self.filter, self.rejected, self.found)


def judge_turn(
    history: Sequence[tuple[str, str]],
    speaker: str,
    text: str,
    policy: Policy,
    settings: FilterSettings = THRESHOLDS,
    *,
    names: Collection[str] = (),
    prompt: str | None = None,
    total: int | None = None,
) -> list[Judgement]:
    """What the filters find in a new message ``text`` of ``speaker``, in the order of :data:`FILTERS`.

    ``history`` holds the (speaker, text) before it. ``names`` are the labels by which a prompt may call the speakers,
    next to those in the history; ``prompt`` is what the model was told, if it was told something that it should not
    repeat. ``total`` is how many messages the conversation is to have, history included: without it no farewell is an
    early exit.
    """
    prompts = {} if prompt is None else {speaker: prompt}
    case = _Case([*history, (speaker, text)], len(history), settings, names, prompts, total)
    return [
        Judgement(name, policy.action(name), found[len(history)].text, (len(history),))
        for name in FILTERS
        if policy.action(name) != "off" and len(history) in (found := FINDERS[name](case))
    ]


def judge_conversation(
    messages: Sequence[tuple[str, str]],
    policy: Policy,
    settings: FilterSettings = THRESHOLDS,
    *,
    names: Collection[str] = (),
    prompts: Mapping[str, str] = NO_PROMPTS,
    total: int | None = None,
) -> list[Judgement]:
    """What the filters find in a whole conversation of (speaker, text), in the order of :data:`FILTERS`: exactly what
    :func:`judge_turn` finds in its messages one after the other, one judgement for each filter, and that messages are
    missing where there are fewer than ``total``. ``prompts`` are by speaker. Without ``total`` the conversation is
    taken to be complete.
    """
    case = _Case(messages, 0, settings, names, prompts, len(messages) if total is None else total)
    judged = []
    for name in FILTERS:
        found = FINDERS[name](case) if policy.action(name) != "off" else {}
        if name == "early_exit" and policy.action(name) != "off" and total is not None and len(messages) < total:
            place = max(len(messages) - 1, 0)
            missing = f"{len(messages)} of {total} messages"
            found[place] = Finding(1, f"{found[place].text}; {missing}" if place in found else missing)
        if found:
            most = max(found, key=lambda place: (found[place].size, place))
            judged.append(Judgement(name, policy.action(name), found[most].text, tuple(sorted(found))))
    return judged


@dataclass(frozen=True, slots=True)
class _Case:
    """What is judged: the messages from ``first`` on, in view of all."""

    messages: Sequence[tuple[str, str]]
    first: int
    settings: FilterSettings
    names: Collection[str]
    prompts: Mapping[str, str]
    total: int | None

    def texts(self) -> list[str]:
        return [text for _, text in self.messages]

    def each(self, judge: Callable[[str, str], str | None]) -> dict[int, Finding]:
        """What ``judge`` finds in (speaker, text) of each message alone, by its place."""
        return {
            i: Finding(0, found)
            for i in range(self.first, len(self.messages))
            if (found := judge(*self.messages[i])) is not None
        }

    def speakers(self) -> set[str]:
        return {*self.names, *(speaker for speaker, _ in self.messages)}


def _early_exit(case: _Case) -> dict[int, Finding]:
    if case.total is None:
        return {}
    said = early_exit(case.texts(), case.settings.early_exit, case.total, case.first)
    return {i: Finding(0, found) for i, found in said.items()}


def _other_speaker(case: _Case) -> dict[int, Finding]:
    speakers = case.speakers()
    times = case.settings.other_speaker
    return case.each(lambda speaker, text: of_message.other_speaker(text, speakers - {speaker}, times))


def _prompt_echo(case: _Case) -> dict[int, Finding]:
    run = case.settings.prompt_echo
    return case.each(lambda speaker, text: of_message.prompt_echo(text, case.prompts.get(speaker, ""), [speaker], run))


def _list(case: _Case) -> dict[int, Finding]:
    settings = case.settings
    return case.each(lambda _, text: of_message.list_like(text, settings.list_lines, settings.list_items))


FINDERS: Mapping[FilterName, Callable[[_Case], dict[int, Finding]]] = {
    "repeated_sentence": lambda case: repetition.repeated_sentence(
        case.texts(), case.settings.repeated_sentence, case.settings.sentence_words
    ),
    "repeated_block": lambda case: repetition.repeated_block(case.texts(), case.settings.repeated_block),
    "same_message": lambda case: repetition.same_message(case.messages, case.settings.same_message),
    "word_loop": lambda case: case.each(lambda _, text: of_message.word_loop(text, case.settings.word_loop)),
    "early_exit": _early_exit,
    "empty": lambda case: case.each(lambda _, text: of_message.empty(text, case.settings.empty)),
    "other_speaker": _other_speaker,
    "prompt_echo": _prompt_echo,
    "too_long": lambda case: case.each(lambda _, text: of_message.too_long(text, case.settings.too_long)),
    "list": _list,
    "too_short": lambda case: case.each(lambda _, text: of_message.too_short(text, case.settings.too_short)),
    "self_disclosure": lambda case: case.each(
        lambda _, text: of_message.self_disclosure(text, case.settings.self_disclosure)
    ),
}
