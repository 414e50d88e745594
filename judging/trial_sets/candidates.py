"""The answers of runs that may become trials; of conversations each speaker of each excerpt (2025 paper, Methods)."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from agents.answers import BY_TASK, ConversationAnswer, ScanpathAnswer, WordAnswer, is_blank
from agents.attention.scanpath_files import OTHER_IMAGE
from agents.errors import InputError
from agents.images import Image
from agents.stimuli import Asked, ShownAnswer
from judging.trial_sets.message_lines import Letter, are_delays_known, as_shown, messages_of
from judging.trial_sets.people_twice import PeopleTwice
from judging.trial_sets.same_rules import ANSWERING_PEOPLE, SameRules
from serving.runs.answer_numbers import texts
from serving.runs.path_frames import PathsOnPictures, records_file
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup, common_stimuli

Truth = Literal["human", "machine"]
PEOPLE_OF_PAIR = "people"  # the column that names the people's conversation of a pair
PEOPLE = ""  # among the names of agents
MORE_THAN_TWO = "conversations of more than two speakers"

RunRecord = dict[str, Any]
RecordKey = tuple[str, str, int]  # a record's run, agent and sample


@dataclass(frozen=True, slots=True)
class AnsweredStimulus:
    """A stimulus of which there are answers, with what it takes to show its picture."""

    task: Asked
    """What was asked about it."""
    id: str
    """Its id in the first run that has it; where no run does, the name that the answers have for it."""
    row: dict[str, Any]
    """Its line of ``stimuli.jsonl``; where no run has it, its id, its task and, for words, its cue."""
    folder: Path
    """The run that the line is from; where no run has it, the first of all."""
    root: Path | None
    """The folder from which the line's paths of pictures go; None where no run has the stimulus."""
    size: tuple[int, int] | None
    """The picture's (width, height) in pixels; None where no picture is at hand."""

    def image(self, name: str = "image") -> Image | None:
        """The picture, or another one by its key in the row; None where the run does not hold it."""
        file = self.row.get(name)
        return Image(file, root=self.root) if self.root is not None and isinstance(file, str) else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may become a trial: an answer, a speaker of an excerpt of a conversation, or a pair of conversations."""

    stimulus: AnsweredStimulus
    """What was answered; for a pair, what the conversation with the machine is about."""
    agent: str
    """Who answered: an agent's name, or a participant's such as "human:05"; for a pair, in the first conversation."""
    truth: Truth
    """Whose the answer is; for a pair, "machine" where a machine speaks in the first conversation."""
    is_catch: bool
    """Whether it is a catch trial: its record is a control, and no part of what is measured."""
    record: RecordKey
    """The record that has the answer: its run, agent and sample."""
    answer: ShownAnswer
    """What the judge sees of it; for a pair, the first conversation."""
    speaker: Letter | None = None
    """The speaker who is judged; for a pair, the machine that talks with a person in the first conversation."""
    length: int | None = None
    """How many messages an excerpt has, or how many turns of a pair are visible; None for other tasks."""
    delays: Sequence[float | None] = ()
    """Seconds that each message took, None where they are not known; empty for other tasks."""
    beside: Candidate | None = None
    """The second conversation of a pair; None where there is no pair."""
    turns: int | None = None
    """For a pair, ``length`` with the turns that were written beforehand, even if they are not visible."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Further columns of the key by name, such as ``partner`` and ``type`` of a conversation."""
    is_swapped: bool = False
    """Whether it is a scanpath that was made on another picture."""
    version: str | None = None
    """Which transformations were applied (:mod:`judging.tells`), "" for none; None where the set has no versions."""
    version_of: Candidate | None = None
    """The same answer as it was drawn, in version ""; None of that one, and where the set has no versions."""
    block: int | None = None
    """The block within which it was matched (:mod:`judging.tells.blocks`); None where nothing is matched."""

    def known_by(self) -> set[str]:
        """The stimulus and, of a pair, the people's conversation."""
        return {self.stimulus.id, *(value for name, value in self.columns.items() if name == PEOPLE_OF_PAIR)}

    def content(self) -> bytes:
        """Bytes that are equal for answers that a judge takes for the same: small letters, spaces and a full stop do
        not count."""
        plain = self.answer.model_dump(exclude_none=True)
        if "text" in plain:
            plain["text"] = " ".join(str(plain["text"]).casefold().split()).rstrip(".")
        parts = [self.stimulus.task, self.stimulus.id, self.speaker, plain]
        return orjson.dumps(
            parts if self.beside is None else [*parts, self.beside.answer.model_dump(exclude_none=True)]
        )


class AnswerReader:
    """The answers in ``runs``, and people's alone in ``people``, as judges see them: words and colours have passed
    ``rules``, which are the same for all. ``passed_over`` counts what is left out, by reason."""

    def __init__(
        self,
        runs: Sequence[Path],
        people: Sequence[Path],
        rules: SameRules | None = None,
        agents: Collection[str] | None = None,
        *,
        show_delays: bool = False,
    ) -> None:
        """``agents`` are the machines that are asked for, None: all. Of others nothing is read but their names, in
        ``not_asked``; machines that converse are in one record with others, and are all read. With ``show_delays``
        messages say how long they took, and ``without_delays`` counts the excerpts that cannot, by the agent that they
        ask about (:data:`PEOPLE` for people)."""
        self.show_delays = show_delays
        self.without_delays = Counter[str]()
        self._asked = None if agents is None else {name.strip() for name in agents}
        self.not_asked = set[str]()
        self.rules = rules or SameRules()
        self._no_rules = SameRules(as_written=True)  # of catch trials
        in_full = {path.resolve() for path in runs}
        self._of_people = [Run(path) for path in people if path.resolve() not in in_full]
        self._folders = [*map(Run, runs), *self._of_people]
        self._names: list[dict[Hashable, str]] = [{} for _ in self._folders]
        self._lookup = StimulusLookup(*self._folders)
        self._stimuli = dict[tuple[str, str], AnsweredStimulus]()
        self.passed_over = Counter[str]()
        self._paths = PathsOnPictures()
        self._twice = PeopleTwice([str(run.path) for run in self._folders])
        self._first: dict[str, Mapping[str, Any]] = {}  # the first scanpath on each picture of unknown size

    def candidates(self, tasks: Collection[str], lengths: Sequence[int]) -> list[Candidate]:
        """The answers to ``tasks`` that may become trials; of conversations, excerpts of ``lengths`` messages. Raises
        InputError with all scanpaths that nothing places on their picture."""
        found: list[Candidate] = []
        for run, record, stimulus in self._answered(tasks):
            found += self._candidates(run, record, stimulus, lengths)
        self._paths.refuse()
        return found

    def answered(self, tasks: Collection[str]) -> Iterator[tuple[RunRecord, AnsweredStimulus]]:
        """The answers with their stimuli, of a key the last. Raises InputError where two folders have the same."""
        for _, record, stimulus in self._answered(tasks):
            yield record, stimulus

    def _answered(self, tasks: Collection[str]) -> Iterator[tuple[Path, RunRecord, AnsweredStimulus]]:
        seen = set[bytes]()
        for number, (folder, names) in enumerate(zip(self._folders, self._names, strict=True)):
            for record in chain.from_iterable(map(folder.latest, [*folder.agents(), *folder.imports()])):
                if record["task"] not in tasks or (folder in self._of_people and record["kind"] != "human"):
                    continue
                if (identity := _identity(record)) in seen:
                    raise InputError(f"answers of {record['agent']} stand in {folder.path} and in an earlier run")
                seen.add(identity)
                if self._is_not_asked(record):
                    self.not_asked.add(record["agent"])
                    continue
                if record["status"] != "ok":
                    self.passed_over[str(record["status"])] += 1
                    continue
                stimulus = self._stimulus(record["task"], record["stimulus"])
                names.setdefault((stimulus.task, stimulus.id), record["stimulus"])
                if record["kind"] == "human":
                    self._twice.add(number, record, stimulus.id)
                yield folder.path, record, stimulus

    def _is_not_asked(self, record: RunRecord) -> bool:
        is_machine = record["kind"] not in ("human", "control") and record["task"] != "conversation"
        return self._asked is not None and is_machine and record["agent"] not in self._asked

    def common(self) -> list[str]:
        """Sentences on the stimuli and the people that several folders have."""
        if len(self._folders) < 2:
            return []
        in_common = common_stimuli([str(run.path) for run in self._folders], self._names)
        return [*in_common, *self._lookup.differing(), *self._twice.sentences()]

    def _stimulus(self, task: Asked, name: str) -> AnsweredStimulus:
        if (task, name) in self._stimuli:
            return self._stimuli[task, name]
        if (place := self._lookup.find(task, name)) is None:
            # Imported answers know a cue by itself, and a picture by its file's name alone.
            row = {"id": name, "task": task}
            if task == "word_association":
                row["cue"] = name
            stimulus = AnsweredStimulus(task, name, row, self._folders[0].path, None, None)
        elif (task, place[1]["id"]) in self._stimuli:
            stimulus = self._stimuli[task, place[1]["id"]]
        else:
            folder = self._folders[place[0]]
            row = place[1]
            stimulus = AnsweredStimulus(task, row["id"], row, folder.path, folder.root or folder.path, None)
            if (image := stimulus.image()) is not None:
                header = image.header()
                stimulus = replace(stimulus, size=(header.width, header.height))
            self._stimuli[task, row["id"]] = stimulus
        self._stimuli[task, name] = stimulus
        return stimulus

    def _candidates(
        self, run: Path, record: RunRecord, stimulus: AnsweredStimulus, lengths: Sequence[int]
    ) -> Iterator[Candidate]:
        if _is_second(record):
            self.passed_over["answers of participants who had the stimulus before"] += 1
            return
        key = (record["run"], record["agent"], record["sample"])
        is_catch = record["kind"] == "control"
        with naming(record):
            answer: Any = BY_TASK[record["task"]].model_validate(record["answer"])
            if isinstance(answer, ConversationAnswer):
                yield from self._speakers(answer, stimulus, key, is_catch, lengths)
                return
            if isinstance(answer, ScanpathAnswer):
                visible = self._path(run, record, stimulus, answer)
            else:
                visible = self._visible(record, stimulus, answer)
        if visible is None:
            self.passed_over[_why_not(answer)] += 1
            return
        truth: Truth = "human" if record["kind"] == "human" else "machine"
        is_swapped = is_catch and record["answer"].get("selection") == OTHER_IMAGE
        if is_swapped:
            whose = record["raw"].get("whose") if isinstance(record["raw"], dict) else None
            if whose not in ("human", "machine"):
                self.passed_over["swapped scanpaths that do not say who looked; generate them again"] += 1
                return
            truth = whose
        columns = _about_person(record)
        yield Candidate(
            stimulus, record["agent"], truth, is_catch, key, visible, columns=columns, is_swapped=is_swapped
        )

    def _rules_for(self, record: RunRecord) -> tuple[SameRules, str]:
        """The rules that an answer passes, and who gave it."""
        rules = self._no_rules if record["kind"] == "control" else self.rules
        return rules, ANSWERING_PEOPLE if record["kind"] == "human" else record["agent"]

    def _visible(self, record: RunRecord, stimulus: AnsweredStimulus, answer: Any) -> ShownAnswer | None:
        """What judges see of an answer in words; None where nothing is left of it. Catch trials pass no rules: they are
        to break them."""
        rules, who = self._rules_for(record)
        match stimulus.task:
            case "object_detection":
                labels = rules.labels(answer, who)
                return ShownAnswer(labels=labels) if labels else None
            case "image_captioning":
                text = rules.caption(answer.text, who)
                return ShownAnswer(text=text) if text else None
            case "color_estimation":
                color = rules.color(answer.color, who)
                return ShownAnswer(color=color) if color else None
        word = rules.word(answer.word, str(stimulus.row.get("cue", stimulus.id)), who)
        return ShownAnswer(word=word) if word else None

    def _path(
        self, run: Path, record: RunRecord, stimulus: AnsweredStimulus, answer: ScanpathAnswer
    ) -> ShownAnswer | None:
        """The path in whole pixels of its picture; without a picture, of its frame."""
        where = records_file(run, record)
        frame = tuple(answer.frame) if stimulus.size is None else stimulus.size
        if stimulus.size is not None:
            points = self._paths.fixations(record, stimulus.size, where)
        else:
            first = self._first.setdefault(stimulus.id, record["answer"])
            are_alike = self._paths.fixations_beside(record, first, where) is not None
            points = answer.fixations if are_alike else None
        if not points:
            return None
        rules, who = self._rules_for(record)
        # The pixel of a place is its floor: x = 319.6 lies in the last of 320 columns, and not beyond the picture.
        pixels = [(float(math.floor(x)), float(math.floor(y))) for x, y in rules.path(points, who)]
        return ShownAnswer.model_validate({"fixations": pixels, "frame": frame})

    def _speakers(
        self,
        answer: ConversationAnswer,
        stimulus: AnsweredStimulus,
        key: RecordKey,
        is_catch: bool,
        lengths: Sequence[int],
    ) -> Iterator[Candidate]:
        lines = messages_of(answer, stimulus.row)
        if lines is None:
            self.passed_over[MORE_THAN_TWO] += 1
            return
        is_empty = True
        speakers = {line.speaker: line.agent for line in reversed(lines) if line.agent}
        excerpts = [lines[:length] for length in lengths if length <= len(lines)]
        # Of the longest one: else a conversation with a gap would be there in short excerpts only, and where people's
        # have gaps, all long ones would be machines'.
        are_known = are_delays_known(max(excerpts, key=len, default=[]))
        for excerpt in excerpts:
            for letter in dict.fromkeys(line.speaker for line in lines):
                agent = next((line.agent for line in excerpt if line.speaker == letter and line.agent), None)
                if agent is None:
                    continue
                is_empty = False
                truth: Truth = "human" if is_person(agent) else "machine"
                if self.show_delays and not are_known:
                    if is_catch:
                        self.passed_over["catch trials with a delay that is not known"] += 1
                    else:
                        self.without_delays[PEOPLE if truth == "human" else agent] += 1
                    continue
                excerpt_of: dict[str, Any] = {"delays": [line.delay for line in excerpt], "length": len(excerpt)}
                excerpt_of |= {"columns": _with_whom(speakers, letter), "speaker": letter}
                visible = as_shown(excerpt, show_delays=self.show_delays)
                yield Candidate(stimulus, agent, truth, is_catch, key, visible, **excerpt_of)
        if is_empty:
            self.passed_over["conversations shorter than the shortest excerpt"] += 1


def _why_not(answer: Any) -> str:
    """Why nothing of an answer can be shown."""
    if is_blank("".join(texts(answer.model_dump()))):
        return "empty"
    return (
        "words that the papers' rules drop"
        if isinstance(answer, WordAnswer)
        else "answers of which nothing can be read"
    )


def _is_second(record: RunRecord) -> bool:
    """Whether a participant of a study has answered the stimulus before: such an answer is a check, and no trial."""
    raw = record["raw"]
    checks = raw.get("checks") if isinstance(raw, dict) else None
    return record["kind"] == "human" and isinstance(checks, dict) and checks.get("twice_of") is not None


def _identity(record: RunRecord) -> bytes:
    source = (record["provenance"] or {}).get("digest")
    names = ("task", "agent", "stimulus", "sample", "seed", "created", "raw")
    return hashlib.blake2b(orjson.dumps([source, *(record[name] for name in names)]), digest_size=16).digest()


@contextmanager
def naming(record: RunRecord) -> Iterator[None]:
    """Within the block an answer that cannot be read raises InputError, which names agent and stimulus."""
    try:
        yield
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: answer: {reason}") from None
    except ValueError as error:  # of a frame without pixels
        raise InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: answer: {error}") from None


def _about_person(record: RunRecord) -> dict[str, str]:
    """What an imported table told about who answered, as columns of the key: ``person.age``."""
    about = record["raw"].get("meta") if record["kind"] == "human" and isinstance(record["raw"], dict) else None
    if not isinstance(about, dict):
        return {}
    return {f"person.{name}": value for name, value in about.items()}


def _with_whom(speakers: Mapping[Letter, str], letter: Letter) -> dict[str, str]:
    """The speaker's ``partner``, and the ``type`` of the conversation: H-H, H-M or M-M (2025 paper, Figure 5E)."""
    others = [agent for speaker, agent in speakers.items() if speaker != letter]
    if not others:
        return {}
    letters = sorted("H" if is_person(agent) else "M" for agent in (*others, speakers[letter]))
    return {"partner": "a person" if is_person(others[0]) else others[0], "type": "-".join(letters)}


def is_person(agent: str) -> bool:
    """Whether the name is a participant's ("human:05")."""
    return agent.partition(":")[0] == "human"
