"""Trials that people judge, with their control questions: what a page shows, and what is kept of its answer."""

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agents.errors import InputError
from judging.study.design.settings import JudgesSettings
from judging.study.log.logged import HumanOrMachine, Sex
from judging.study.log.participant_events import TrialJudged
from judging.study.log.state import Judge
from judging.study.log.steps import Instructions, MaterialStep, Step
from judging.study.pages.controls import Control, read_controls, uncertain_options
from judging.study.pages.first_page import JUDGED_S, PAIR_S, UNITS
from judging.study.pages.material import Extent, Material
from judging.study.pages.page_answers import (
    LONGEST_REASON,
    ROUNDED,
    BadAnswer,
    SentWithTime,
    WrittenOrNot,
    parsed_answer,
)
from judging.study.pages.pool import TimesSeen, TrialPool
from judging.trial_sets.drawn_from import changed_answers
from judging.trial_sets.trial_set import TRIALS_FILE, VERDICTS, about_path, key_path, read_about
from serving.files.words import count

SENT = {"choices", "sex", "confidence", "reason", "seconds_before", "play_once"}
"""The settings of trials that their page is sent."""


class TrialAnswer(SentWithTime):
    """What the page of a trial sends."""

    verdicts: list[HumanOrMachine]
    """One for each trial of the page."""
    key: bool = False
    """Whether it was given by the keyboard."""
    confidence: Annotated[float, Field(ge=0, le=1), ROUNDED] | None = None
    """How sure the judge is, from 0 to 1, rounded to three digits; None where it is not asked."""
    reason: Annotated[WrittenOrNot, Field(max_length=LONGEST_REASON)] = ""
    """In the judge's own words, at most 2,000 letters; "" where they give none."""
    control: str | None = None
    """The answer to the control question."""
    sexes: list[Sex] = Field(default_factory=list)
    """For whom the judge takes who answered, one for each trial."""


class TrialMaterial(Material):
    """The trials of ``pool``, of the study in the folder ``study``."""

    settings: JudgesSettings
    kind = "trial"

    def __init__(self, pool: TrialPool, study: Path) -> None:
        super().__init__(pool.settings)
        self.pool = pool
        self.study = study
        self.number = pool.settings.trials.number
        self.source = pool.folder / TRIALS_FILE
        self.sha256 = self.sha256_on_disk()

    def sha256_on_disk(self) -> str:
        """That of the key, which has a checksum of each trial."""
        key = key_path(self.pool.folder)
        if not key.is_file():
            raise InputError(f"there is no key {key}: put it back as `turinglike trials` wrote it")
        return hashlib.sha256(key.read_bytes()).hexdigest()

    def to_put_back(self) -> str:
        """The folder of the trials and the two files beside it, which belong together."""
        folder = self.pool.folder
        others = [path.name for path in (key_path(folder), about_path(folder))]
        return f"the trials of that time ({folder}, {' and '.join(others)} beside it)"

    @cached_property
    def controls(self) -> dict[str, Control]:
        """The control question of each stimulus. Raises InputError where they cannot be made."""
        return read_controls(self.settings.trials.control, self.study, self.pool.key, self.sha256)

    def problems(self) -> list[str]:
        """Also control questions that cannot be made."""
        problems = self.pool.problems()
        try:
            self.controls  # noqa: B018
        except InputError as error:
            problems += [*map(str, error.problems), str(error)]
        return problems

    def warnings(self) -> list[str]:
        """Control questions that may have no right answer, settings without effect, rules that select by bias, and
        answers that have changed since the trials were drawn."""
        trials = self.settings.trials
        least = self.settings.exclude.catch
        uncertain = uncertain_options(trials.control, self.pool.key)
        warnings = [] if uncertain is None else [uncertain]
        warnings += changed_answers(read_about(key_path(self.pool.folder)), self.pool.folder.name)
        if self.pool.of_pairs:
            warnings += self._unused_of_pairs()
        if len(self.pool.versions) > 1:
            warnings.append(
                f"trials.number: the {count(trials.number, 'trial')} of a judge are shared by "
                f"{len(self.pool.versions)} versions of the answers. `study plan` counts all of them, and the scores "
                "of agents are of the version as drawn alone: plan for more judges"
            )
        number = self.pool.catch_trials()
        if trials.catch and self.pool.has_catch() and not number:
            enough = next(more for more in itertools.count(trials.number) if round(trials.catch * more))
            warnings.append(
                f"trials.catch: no judge gets a catch trial: {trials.catch:g} of {count(trials.number, 'trial')} is "
                f"rounded to 0. With trials.number = {enough} there is one"
            )
        if not least or not number:
            return warnings
        out = sum(math.comb(number, caught) for caught in range(number + 1) if caught < least * number) / 2**number
        return [
            *warnings,
            "exclude.catch: this rule excludes judges by their bias to say human, which changes all scores. With "
            f"{count(number, 'catch trial')} for each judge it excludes {out:.0%} of the judges who guess. Control "
            "questions measure attention",
        ]

    def _unused_of_pairs(self) -> list[str]:
        """What the settings ask for that nobody gets where two conversations stand beside each other."""
        trials = self.settings.trials
        unused = []
        if self.settings.analysis.bounds:
            unused.append(
                "analysis.bounds: does nothing for pairs of conversations, whose measure is the pass rate: "
                "`study status` decides on no agent. Set it to 0"
            )
        if trials.choices != "one":
            unused.append(
                f'trials.choices: "{trials.choices}" does nothing for pairs of conversations: judges say which of the '
                'two has the machine. Set it to "one"'
            )
        if trials.prior_told:
            unused.append(
                "trials.prior_told: does nothing for pairs of conversations: each has one machine, and the page says "
                "so. Set it to false"
            )
        return unused

    def summary(self) -> str:
        """With the number that a judge's pages count up to, and of the pages of each kind in the set."""
        seen = self.extent().number
        parts = [f"{self.number:,} that count"]
        if self.settings.trials.catch and self.pool.has_catch():
            parts.append(count(self.pool.catch_trials(), "catch trial"))
        if again := seen - self.number - self.pool.catch_trials():
            parts.append(f"{again:,} shown again")
        of_which = f" ({' + '.join(parts)})" if len(parts) > 1 else ""
        trials = f"{count(seen, 'trial')} for each judge{of_which}"
        return f"{self.settings.task}: {trials}, drawn from these: {self.pool.numbers()}"

    def extent(self) -> Extent:
        """Pages with their catch trials and repeats; a page may not be answered before ``trials.seconds_before``."""
        trials = self.settings.trials
        number = trials.number + self.pool.catch_trials() + round(trials.repeats * trials.number)
        of_pairs = self.pool.of_pairs
        seconds = max(PAIR_S if of_pairs else JUDGED_S[self.settings.task], trials.seconds_before)
        phrase = "first_judge_pairs" if of_pairs else "first_judge"
        return Extent("pairs" if of_pairs else UNITS[self.settings.task], number, trials.practice, seconds, phrase)

    def steps(self, seen: TimesSeen, chance: random.Random) -> list[Step]:
        """A list drawn from the pool, with its examples in the instructions."""
        turns, examples = self.pool.draw(seen, chance)
        trials = [self.step(*turn.page.trials, phase=turn.phase, again=turn.again) for turn in turns]
        return [Instructions(kind="instructions", examples=[list(page.trials) for page in examples]), *trials]

    def control(self, step: MaterialStep) -> Control | None:
        """The control question of a step; None where the study has none."""
        return self.controls.get(str(self.pool.key[step.trials[0]]["stimulus"]))

    def read(
        self, judge: Judge, number: int, answer: dict[str, Any], at: str, meeting: str | None = None
    ) -> TrialJudged:
        """The verdicts, and what the settings ask for beside them."""
        step = judge.steps[number]
        assert isinstance(step, MaterialStep)
        sent = parsed_answer(TrialAnswer, answer)
        settings = self.settings.trials
        control = self.control(step)
        if len(sent.verdicts) != len(step.trials):
            raise BadAnswer(f"verdicts: must be {len(step.trials)} of human and machine")
        asked: dict[str, Any] = {}  # what not every study asks for
        if settings.confidence:
            if sent.confidence is None:
                raise BadAnswer("confidence: is missing")
            asked["confidence"] = sent.confidence
        if settings.reason:
            asked["reason"] = sent.reason
        if settings.sex:
            if len(sent.sexes) != len(step.trials):
                raise BadAnswer("sexes: must be as many as the verdicts")
            asked["sexes"] = sent.sexes
        if control is not None:
            if sent.control not in control.options:
                raise BadAnswer("control: must be an option")
            asked |= {"control": sent.control, "right": sent.control == control.correct}
        return TrialJudged(
            judge=judge.code,
            at=at,
            step=number,
            kind="trial",
            rt=sent.rt,
            away=sent.away,
            verdicts=sent.verdicts,
            key=sent.key,
            **asked,
        )

    def instructions(self, judge: Judge, step: Instructions) -> dict[str, Any]:
        """Also the examples, which tell their truth."""
        samples = [{**self._trial(page), "truth": self.pool.truth(page)} for page in step.examples]
        trials = self.settings.trials
        return {
            "trials": judge.counted(),
            "of": self.kind,
            **trials.model_dump(include={"practice", "feedback", "prior_told"}),
            "keys": judge.keys,
            "four": trials.choices == "four" and not self.pool.of_pairs,
            "pairs": self.pool.of_pairs,
            "samples": samples,
        }

    def show(self, judge: Judge, step: MaterialStep) -> dict[str, Any]:
        """What was answered, the options in the order of the keys, and the control question."""
        trials = self.settings.trials
        control = self.control(step)
        pairs = zip(VERDICTS, judge.keys, strict=True)
        return {
            **self._trial(step.trials),
            "practice": step.phase == "practice",
            # in the order of the keys, which differs from judge to judge
            "options": sorted(pairs, key=lambda pair: pair[1] != trials.keys[0]),
            **trials.model_dump(include=SENT),
            "control": None if control is None else control.sent,
        }

    def truth(self, step: Step) -> list[str] | None:
        """The truth of a step's trials in practice and with feedback; None elsewhere."""
        if isinstance(step, MaterialStep) and step.phase in ("practice", "feedback"):
            return self.pool.truth(step.trials)
        return None

    def files(self, step: Step) -> dict[str, Path]:
        """The pictures and clips of the step's trials, and of examples."""
        trials: list[str] = []
        if isinstance(step, MaterialStep):
            trials = step.trials
        elif isinstance(step, Instructions):
            trials = [trial for page in step.examples for trial in page]
        names = [name for trial in trials for _, name in self._named(trial)]
        return {name: self.pool.folder / "media" / name for name in names}

    def _trial(self, names: Sequence[str]) -> dict[str, Any]:
        trial = self.pool.trials[names[0]]
        page: dict[str, Any] = {
            "asked": trial.asked,
            "speakers": [self.pool.trials[name].speaker for name in names],
            "answer": trial.answer.model_dump(mode="json", exclude_none=True),
        }
        if trial.beside is not None:
            page["beside"] = trial.beside.model_dump(mode="json", exclude_none=True)
        if trial.cue is not None:
            page |= {"cue": trial.cue, "examples": [list(pair) for pair in trial.examples]}
        if trial.asked == "attention_prediction":
            del page["answer"]  # the clip shows it
        return page | {field: f"media/{name}" for field, name in self._named(names[0])}

    def _named(self, trial: str) -> Iterator[tuple[str, str]]:
        images = self.pool.trials[trial].images_by_field()
        fields = ("clip",) if "clip" in images else ("image", "target_image")  # the clip shows both
        for field in fields:
            if field in images:
                yield field, images[field].name.rpartition("/")[2]
