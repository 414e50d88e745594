"""Which trials a judge gets: half people's, the others equally the agents', those first that fewer judges saw.

Where a page asks about both speakers of a conversation, the four pairs of truths are equally frequent (the form of the
2025 paper). Where a page has two conversations, each agent is equally often in the first and in the second.

A set may have versions of its answers (:mod:`judging.tells`). Then a judge sees a stimulus in one version. Of an agent,
and of people, versions come equally often, first in a judge's list and then over judges. Practice and examples show
answers as they were drawn.
"""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from agents.stimuli import JudgementStimulus, canonical, parse_row
from judging.study.design.settings import JudgesSettings
from judging.study.log.steps import Phase
from judging.trial_sets.candidates import PEOPLE_OF_PAIR
from judging.trial_sets.drawing import arrange, half, shares
from judging.trial_sets.trial_set import TRIALS_FILE, VERDICTS, check_trials, key_path, read_trial_key
from serving.files.words import count

TimesSeen = Mapping[tuple[str, ...], int]
"""By the trials of a page, how many judges had it."""
HOW_TO_CATCH = "run `turinglike generate SET --agents catch`, and make the trials again with this run, too"
KINDS_IN_WORDS = {
    "human": "of people",
    "catch": "catch trials",
    "swapped": "swapped scanpaths",
    "human human": "between people",
    "human machine": "of a person (A) with a machine (B)",
    "machine human": "of a machine (A) with a person (B)",
    "machine machine": "between machines",
}
"""What a cell's pages are of, where they are not of an agent."""
CATCH = ("catch", "swapped")
"""The cells whose pages are no trials that are scored."""


@dataclass(frozen=True, slots=True)
class TrialPage:
    """What is shown at once."""

    trials: tuple[str, ...]
    """The trials' ids: one, or one for each speaker."""
    cell: str
    """What quotas are counted by: "human", an agent, a pair of truths such as "human machine", or one of ``CATCH``."""
    agents: tuple[str, ...]
    """The agents who answered."""
    stimulus: str
    """The id of the stimulus; for pairs, that of the machine's conversation."""
    catch: bool
    """Whether the page is a catch trial of either kind."""
    people: str | None = None
    """For pairs, the id of the conversation of people."""
    version: str = ""
    """The version of the answer, as the key names it; "" where it is as it was drawn."""

    def known_by(self) -> set[str]:
        """What nobody sees twice: the stimulus and, of pairs, the conversation of people."""
        return {self.stimulus} if self.people is None else {self.stimulus, self.people}


@dataclass(frozen=True, slots=True)
class PageTurn:
    """A page in somebody's list."""

    page: TrialPage
    """What the judge sees in this turn."""
    phase: Phase
    """Whether the verdict counts, and whether the truth is shown after it."""
    again: bool = False
    """Whether it comes a second time."""


class TrialPool:
    """The trials of a set that a study may show, and its key.

    ``folder`` is the set, ``settings`` say how many of each kind are wanted. No judge sees a stimulus twice, except for
    repeats: that is why few stimuli make short lists. Raises InputError for an unusable set or key.
    """

    def __init__(self, folder: Path, settings: JudgesSettings) -> None:
        source = folder / TRIALS_FILE
        key = key_path(folder)
        if not source.is_file():
            raise InputError(f"{folder} is no trial set: it has no {TRIALS_FILE}; `turinglike trials` makes one")
        self.folder = folder
        self.settings = settings
        rows = read_trial_key(key)
        self.trials: dict[str, JudgementStimulus] = {}
        lines: list[tuple[int, str, bytes]] = []
        for number, line in enumerate(source.read_bytes().splitlines(), start=1):
            trial = parse_row(line, root=folder)
            if not isinstance(trial, JudgementStimulus):
                raise InputError(f"{source}:{number}: is no trial")
            lines.append((number, trial.id, canonical(trial)))
            if trial.asked == settings.task and rows.get(trial.id, {}).get("repeat_of") is None:
                self.trials[trial.id] = trial
        check_trials(source, lines, rows, key)
        if not self.trials:
            raise InputError(f"{source} has no trials of {settings.task}")
        self.key: dict[str, dict[str, Any]] = {name: rows[name] for name in self.trials}
        self.of_pairs = any(trial.beside is not None for trial in self.trials.values())
        self.versions = sorted({row["version"] or "" for row in self.key.values()})
        if len(self.versions) > 1 and settings.trials.choices != "one":
            raise InputError(
                f'trials.choices: must be "one", because {folder} has versions of its answers: in each version the '
                "messages of one speaker alone are changed"
            )
        self.pages = self._pages()
        self.cells: dict[str, list[TrialPage]] = defaultdict(list)
        for page in self.pages:
            self.cells[page.cell].append(page)

    def _pages(self) -> list[TrialPage]:
        by_excerpt: dict[object, list[str]] = defaultdict(list)
        together = self.settings.trials.choices != "one" and not self.of_pairs
        for name, trial in self.trials.items():
            excerpt = orjson.dumps([trial.shown, trial.answer.model_dump(mode="json")]) if together else name
            by_excerpt[excerpt].append(name)
        pages = []
        for names in by_excerpt.values():
            names.sort(key=lambda name: self.trials[name].speaker or "")
            if together and [self.trials[name].speaker for name in names] != ["A", "B"]:
                continue  # a speaker has no message that can be judged
            keys = [self.key[name] for name in names]
            machines = tuple(
                key[f"{side}agent"] for key in keys for side in ("", "beside_") if key[f"{side}truth"] == "machine"
            )
            is_catch = any(key["catch"] for key in keys)
            cell = machines[0] if machines else "human"
            if is_catch:
                is_swapped = any(key["swapped"] for key in keys)
                cell = "swapped" if is_swapped else "catch"
            elif together or self.of_pairs:
                names_of_cell = [key["truth"] for key in keys]
                if self.of_pairs:
                    names_of_cell += machines
                cell = " ".join(names_of_cell)
            people = keys[0].get(f"meta.{PEOPLE_OF_PAIR}")
            version = keys[0]["version"] or ""
            pages.append(TrialPage(tuple(names), cell, machines, keys[0]["stimulus"], is_catch, people, version))
        if not pages:
            raise InputError(
                f"{self.folder}: no excerpt has both its speakers among the trials; make the trials again with every "
                "answer (--every)"
            )
        return pages

    def problems(self) -> list[str]:
        """All because of which no list can be drawn as the settings want it."""
        wanted = self.settings.trials
        problems = list[str]()
        kinds = {"machine" if page.agents else "human" for page in self.pages if not page.catch} | self.cells.keys()
        needed = {"one": {*VERDICTS}, "four": {" ".join(pair) for pair in product(VERDICTS, repeat=2)}}
        if not self.of_pairs and (lacking := needed.get(wanted.choices, set()) - kinds):
            problems.append(f"trials: the trial set has none of these: {', '.join(sorted(lacking))}")
        pictures = {image.name for trial in self.trials.values() for image in trial.images_by_field().values()}
        if gone := sorted(name for name in pictures if not (self.folder / name).is_file()):
            problems.append(f"trials: {count(len(gone), 'picture')} missing, such as {gone[0]}")
        if wanted.catch and not self.has_catch():
            problems.append(f"trials.catch: the trial set has no catch trials: set catch to 0, or {HOW_TO_CATCH}")
        if few := self.lacking():
            problems.append(
                "trials.number, practice, catch, sample: reduce these settings. A judge sees no stimulus and no "
                f"conversation of people twice. {self._why_lacking(few)}"
            )
        return problems

    def _why_lacking(self, few: int) -> str:
        """Why ``few`` of a judge's trials cannot be drawn, by what takes the stimuli."""
        number = self.settings.trials.number
        stimuli = len({page.stimulus for page in self.pages})
        taken = {name: each for name, each in self._beside().items() if each}
        left = max(0, stimuli - sum(taken.values()))
        clauses = [f"{name} {'takes' if name == 'practice' else 'take'} {each:,}" for name, each in taken.items()]
        there = f"The set has {count(stimuli, 'stimulus', 'stimuli')}. "
        if clauses:
            there += f"{', '.join(clauses)}. ".capitalize()
        if left < number:
            rest = {0: "None is", 1: "1 is"}.get(left, f"{left:,} are")
            return f"{there}{rest} left for the {count(number, 'trial')}"
        return (
            f"{there}{left:,} are left, but kinds of trials come equally often, and so {few:,} of the "
            f"{count(number, 'trial')} cannot be drawn"
        )

    def catch_trials(self) -> int:
        """How many catch trials each judge gets: a share of ``trials.number``, rounded."""
        wanted = self.settings.trials
        return round(wanted.catch * wanted.number) if self.has_catch() else 0

    def lacking(self) -> int:
        """How many of the wanted trials a judge may not get, by three lists that are drawn on trial."""
        drawn = [self.draw({}, random.Random(seed)) for seed in range(3)]
        fewest = min(sum(not turn.again for turn in turns) + len(examples) for turns, examples in drawn)
        return self.settings.trials.number + sum(self._beside().values()) - fewest

    def why_no_more(self) -> str:
        """Why a judge cannot have more trials than ``trials.number`` now is, after :meth:`fit`."""
        stimuli = len({page.stimulus for page in self.pages})
        if self.settings.trials.number + sum(self._beside().values()) == stimuli:
            return f"the set has {self._stimuli()}"
        return (
            f"the set has {self._stimuli()}, and no more trials can be drawn from them. No stimulus and no "
            f"conversation of people comes twice, and kinds of trials come equally often: {self.numbers()}"
        )

    def numbers(self) -> str:
        """The number of answers of each kind, in words such as "16 of people, 8 of mmcq, 2 catch trials"."""
        numbers = {cell: sum(not page.version for page in pages) for cell, pages in sorted(self.cells.items())}
        return ", ".join(f"{number:,} {self._in_words(cell)}" for cell, number in numbers.items())

    def _in_words(self, cell: str) -> str:
        """What a cell's pages are of, such as "of people", or "of a machine (A) with a person (B)"."""
        if cell in KINDS_IN_WORDS:
            return KINDS_IN_WORDS[cell]
        first, _, agent = cell.partition(" ")
        if self.of_pairs and agent:
            return f"with {agent} in the {'first' if first == 'machine' else 'second'} conversation"
        return f"of {cell}"

    def _beside(self) -> dict[str, int]:
        """What takes stimuli beside the trials that are counted, and how many."""
        wanted = self.settings.trials
        kinds = {bool(page.agents) for page in self.pages if not page.catch} if wanted.sample else set()
        return {
            "practice": wanted.practice,
            "catch trials": self.catch_trials(),
            "examples": len(kinds),
        }

    def _stimuli(self) -> str:
        """How many there are, and what they are needed for beside the trials that are counted."""
        stimuli = count(len({page.stimulus for page in self.pages}), "stimulus", "stimuli")
        needed = [f"{number:,} for {name}" for name, number in self._beside().items() if number]
        if not needed:
            return stimuli
        *others, last = needed
        return f"{stimuli} minus {', '.join(others)} and {last}" if others else f"{stimuli} minus {last}"

    def fit(self, given: Collection[str] = ()) -> dict[str, Any]:
        """Reduce the settings to what the set has; returns the changed choices. Those that are ``given`` stay.

        Where practice and examples would take more stimuli than the trials that count, there are none of them: of three
        topics nothing else would be left.
        """
        wanted = self.settings.trials
        if not self.has_catch() and wanted.catch and "catch" not in given:
            self._choose(catch=0.0)
        self._fit_number(given)
        beside = self._beside()
        aside = {"practice": 0, "sample": False}
        is_little = self.settings.trials.number < beside["practice"] + beside["examples"]
        if "number" not in given and (is_little or self.lacking()):
            self._choose(number=wanted.number, **{name: value for name, value in aside.items() if name not in given})
            self._fit_number(given)
        names = ("catch", "number", *aside)
        now = self.settings.trials
        return {name: getattr(now, name) for name in names if getattr(now, name) != getattr(wanted, name)}

    def _fit_number(self, given: Collection[str]) -> None:
        while "number" not in given and self.settings.trials.number > 1 and self.lacking():
            self._choose(number=self.settings.trials.number - 1)

    def _choose(self, **choices: Any) -> None:
        trials = self.settings.trials.model_copy(update=choices)
        self.settings = self.settings.model_copy(update={"trials": trials})

    def truth(self, trials: Iterable[str]) -> list[str]:
        """The truth of each trial, by ids: "human" or "machine"."""
        return [self.key[name]["truth"] for name in trials]

    def has_catch(self) -> bool:
        """Whether the set has catch trials of either kind."""
        return any(name in self.cells for name in CATCH)

    def draw(self, seen: TimesSeen, chance: random.Random) -> tuple[list[PageTurn], list[TrialPage]]:
        """A judge's list, and the examples of their instructions.

        ``seen`` counts the judges who had a page: those come first that fewer had. Catch trials are drawn before all
        else, and examples last, for these must be of stimuli that the judge does not meet.

        The order of the draws is behaviour. Each takes numbers from ``chance``, and each adds to ``used`` and to the
        stimuli that the judge knows. Another order gives another list for the same judge.
        """
        wanted = self.settings.trials
        used: Counter[str] = Counter()  # of machines: the remainder goes to those who had least
        for page in self.pages:
            for agent in page.agents:
                used[agent] += seen.get(page.trials, 0)
        stimuli = set[str]()
        given: Counter[tuple[str, str]] = Counter()
        kinds = [name for name in CATCH if name in self.cells]
        quota = shares(self.catch_trials(), kinds, chance) if kinds else {}
        as_drawn = [""]
        # Catch trials first: they are of fewer stimuli than the others.
        caught = self._take(quota, seen, used, stimuli, chance, given, as_drawn)
        quota = self._quota(wanted.practice, used, chance)
        practice = self._take(quota, seen, used, stimuli, chance, Counter(), as_drawn)
        quota = self._quota(wanted.feedback, used, chance)
        learning = self._take(quota, seen, used, stimuli, chance, given, self.versions)
        quota = self._quota(wanted.number - wanted.feedback, used, chance)
        tested = self._take(quota, seen, used, stimuli, chance, given, self.versions)
        order = arrange(tested, caught, round(wanted.repeats * wanted.number), chance)
        turns = [PageTurn(page, "feedback") for page in chance.sample(learning, len(learning))]
        turns += [PageTurn(page, "test", again) for page, again in order]
        examples = list[TrialPage]()  # last: of stimuli that the judge does not meet
        if wanted.sample:
            for is_machine in (False, True):
                drawn = [page for page in self.pages if not page.catch and not page.version]
                plain = [page for page in drawn if bool(page.agents) == is_machine]
                if fit := [page for page in plain if stimuli.isdisjoint(page.known_by())]:
                    examples.append(chance.choice(fit))
                    stimuli |= examples[-1].known_by()
        return [*(PageTurn(page, "practice") for page in chance.sample(practice, len(practice))), *turns], examples

    def _quota(self, number: int, used: Mapping[str, int], chance: random.Random) -> dict[str, int]:
        cells = [name for name in self.cells if name not in CATCH]
        agents = [name for name in cells if name != "human"]
        if self.of_pairs or self.settings.trials.choices != "one" or "human" not in cells or not agents:
            return shares(number, sorted(cells), chance)
        people = half(number, chance)
        ranked = sorted(agents, key=lambda name: (used[name], chance.random()))
        per_agent, rest = divmod(number - people, len(agents))
        quota = dict.fromkeys(ranked, per_agent)
        for name in ranked[:rest]:
            quota[name] += 1
        return {"human": people, **quota}

    def _take(
        self,
        quota: Mapping[str, int],
        seen: TimesSeen,
        used: Counter[str],
        stimuli: set[str],
        chance: random.Random,
        given: Counter[tuple[str, str]],
        versions: Collection[str],
    ) -> list[TrialPage]:
        """Pages by the numbers of ``quota``, cell by cell, in one of ``versions``. Adds to ``used``, ``stimuli`` and
        ``given``, which counts the versions of each cell, what they show.

        The cell with the fewest pages comes first, or the others might have taken its stimuli. Pages come by how many
        judges had them, then by how often their version was given, then by how often their agents were used, then by
        chance. ``rank`` draws a number for every page of a cell, also for pages that are not taken: to draw fewer would
        change the later lists.
        """
        taken: list[TrialPage] = []
        for cell in sorted(quota, key=lambda name: len(self.cells.get(name, ()))):

            def rank(page: TrialPage) -> tuple[int, int, float]:
                return seen.get(page.trials, 0), sum(used[agent] for agent in page.agents), chance.random()

            # By version, the pages that are left with their places in the order.
            left: dict[str, deque[tuple[int, TrialPage]]] = {version: deque() for version in versions}
            for place, page in enumerate(sorted(self.cells.get(cell, ()), key=rank)):
                if page.version in left:
                    left[page.version].append((place, page))
            for _ in range(quota[cell]):
                for pages in left.values():
                    while pages and not stimuli.isdisjoint(pages[0][1].known_by()):
                        pages.popleft()
                firsts = {version: pages[0] for version, pages in left.items() if pages}
                if not firsts:
                    break
                order = {
                    version: (seen.get(page.trials, 0), given[cell, version], place)
                    for version, (place, page) in firsts.items()
                }
                version = min(order, key=lambda name: order[name])
                _, page = left[version].popleft()
                given[cell, version] += 1
                stimuli |= page.known_by()
                used.update(page.agents)
                taken.append(page)
        return taken
