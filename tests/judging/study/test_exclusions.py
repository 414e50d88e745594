"""Rules know nothing of what is scored: who guesses is at chance before them and after them, whatever is excluded."""

import math
import random
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from agents.stimuli import TASKS
from judging.study.design.presets import study_of_judges
from judging.study.design.settings import JudgesSettings
from judging.study.design.tables import Exclude
from judging.study.log.participant_events import TrialJudged
from judging.study.log.state import Judge, State
from judging.study.log.steps import MaterialStep
from judging.study.pages.controls import read_controls
from judging.study.results.verdict_rows import verdict_rows

RULES = sorted(set(Exclude.model_fields) - {"right"})
NAMES = ("animal", "boat", "chair", "door", "engine", "fence")
Key = dict[str, dict[str, Any]]


def settings(task: Any, preset: str, **exclude: Any) -> JudgesSettings:
    tables = tomllib.loads(study_of_judges("T", task, preset))
    if exclude:
        tables["exclude"] = {"finished": False} | exclude
    return JudgesSettings.model_validate(tables)


def key_of(task: str, number: int = 60) -> Key:
    """To each stimulus a person's answer and a machine's, and in half of them one to catch and a swapped one."""
    found: Key = {}
    for at in range(number):
        kinds = [("human", ""), ("machine", ""), ("machine", "catch"), ("human", "swapped"), ("machine", "swapped")]
        for truth, catch in kinds[: 5 if at % 2 else 2]:
            objects = {"present": [NAMES[at % 3]], "absent": list(NAMES[3:])}
            found[f"t{len(found)}"] = {
                "asked": task,
                "stimulus": f"s{at}",
                "truth": truth,
                "agent": truth,
                "speaker": None,
                "catch": bool(catch),
                "swapped": catch == "swapped",
                "objects": objects,
                "meta.topic": NAMES[at % 6],
            }
    return found


def coin_judges(key: Key, chosen: JudgesSettings, number: int, chance: random.Random) -> tuple[State, dict[str, Any]]:
    """Judges who toss a coin about every trial. Every other one answers controls rightly; some hurry, some go away."""
    controls = read_controls(chosen.trials.control, None, key, "1")  # type: ignore[arg-type]
    kinds: dict[tuple[str, bool, bool], list[str]] = {}
    for name, row in key.items():
        kinds.setdefault((row["truth"], row["catch"], row["swapped"]), []).append(name)
    state = State()
    personal = {}
    for at in range(number):
        each = chosen.trials.number // 2
        catch = max(2, round(chosen.trials.catch * chosen.trials.number))
        names = [
            *chance.sample(kinds["human", False, False], each),
            *chance.sample(kinds["machine", False, False], each),
        ]
        names += chance.sample(kinds["machine", True, False], catch)
        names += [chance.choice(kinds[truth, True, True]) for truth in ("human", "machine")]
        chance.shuffle(names)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        judge = Judge(f"j{at}", "", now.isoformat(), at, ["f", "j"], [], "", last_seen=now.isoformat())
        looks = at % 2 == 0
        pace = chance.choice((0.5, 6.0))
        for name in names if chance.random() < 0.8 else names[: len(names) // 2]:
            now += timedelta(seconds=pace * chance.random())
            said: dict[str, Any] = {
                "rt": chance.choice((None, 5000.0)),
                "away": False,
                "key": True,
                "at": now.isoformat(),
            }
            said["verdicts"] = [chance.choice(("human", "machine"))]
            if (control := controls.get(key[name]["stimulus"])) is not None:
                said["right"] = looks or chance.choice(control.options) == control.correct
            judge.steps.append(MaterialStep(kind="trial", trials=[name], phase="test", again=False))
            judge.answers.append(TrialJudged(judge=judge.code, step=judge.step, kind="trial", **said))
        judge.ended = "finished" if len(judge.answers) == len(names) else None
        state.judges[judge.code] = judge
        personal[judge.code] = {"native_language": chance.choice(("yes", "no"))}
    return state, personal


def rows_of(state: State, chosen: JudgesSettings, key: Key, personal: dict[str, Any]) -> list[dict[str, Any]]:
    return list(verdict_rows(state, chosen, SimpleNamespace(key=key), personal))  # type: ignore[arg-type]


def check_chance(rows: list[dict[str, Any]]) -> None:
    """Detectability is within four standard errors of 0.5, by the binomial's closed form."""
    right = Counter((row["truth"], row["correct"]) for row in rows if not row["catch"])
    each = {truth: right[truth, True] + right[truth, False] for truth in ("human", "machine")}
    detectability = sum(right[truth, True] / each[truth] for truth in each) / 2
    error = math.sqrt(sum(0.25 / number for number in each.values())) / 2
    assert abs(detectability - 0.5) < 4 * error, (detectability, error, each)


def every() -> Iterator[Any]:
    for task in TASKS:
        for preset in ("plain", "2022", "2025"):
            yield pytest.param(task, preset, {}, id=f"{task}-{preset}")
    for rule in RULES:
        whole = Exclude.model_fields[rule].annotation is bool
        value = True if whole else 1.0 if rule == "fastest" else 0.7
        task = "conversation" if rule in ("controls", "wrong_control") else "word_association"
        yield pytest.param(task, "2022", {rule: value}, id=rule)


@pytest.mark.parametrize(("task", "preset", "exclude"), list(every()))
def test_who_tosses_a_coin_is_at_chance(task: str, preset: str, exclude: dict[str, Any]) -> None:
    """And with the truths of all trials but catch trials turned round, the same rules exclude the same."""
    key = key_of(task)
    chosen = settings(task, preset, **exclude)
    assert chosen.trials.sample == (chosen.judges.break_every > 0) == (preset == "plain")  # the papers tell of neither
    if exclude:
        chosen = chosen.model_copy(update={"trials": chosen.trials.model_copy(update={"number": 8})})
    state, personal = coin_judges(key, chosen, 150, random.Random(f"{task} {preset} {exclude}"))
    rows = rows_of(state, chosen, key, personal)
    check_chance([row for row in rows if not row["rules"]])
    out = [row for row in rows if row["rules"]]
    if out or exclude:
        check_chance(out)
    if exclude:
        assert {rule for row in rows for rule in row["rules"]} == set(exclude)
    turned = {
        name: row if row["catch"] else row | {"truth": "machine" if row["truth"] == "human" else "human"}
        for name, row in key.items()
    }
    assert [row["rules"] for row in rows_of(state, chosen, turned, personal)] == [row["rules"] for row in rows]


def answered(*answers: tuple[str, dict[str, Any]]) -> State:
    judge = Judge("j", "", "2026-01-01T00:00:00+00:00", 1, ["f", "j"], [], "", ended="finished")
    for name, answer in answers:
        judge.steps.append(MaterialStep(kind="trial", trials=[name], phase="test", again=False))
        said = {"rt": 5000.0, "away": False, "key": True, "at": judge.joined, **answer}
        judge.answers.append(TrialJudged(judge="j", step=judge.step, kind="trial", **said))
    return State(judges={"j": judge})


def test_swapped_scanpaths_are_nobodys_test() -> None:
    """The rule on catch trials does not exclude who is at chance in swapped ones (L502)."""
    key = key_of("attention_prediction")
    chosen = settings("attention_prediction", "plain", catch=1.0)
    swapped = [name for name, row in key.items() if row["swapped"]][:20]
    caught = [name for name, row in key.items() if row["catch"] and not row["swapped"]][:2]
    verdicts = [(name, key[name]["truth"] if name in caught else "human") for name in (*swapped, *caught)]
    rows = rows_of(answered(*((name, {"verdicts": [verdict]}) for name, verdict in verdicts)), chosen, key, {})
    assert {tuple(row["rules"]) for row in rows} == {()}
    assert Counter(row["phase"] for row in rows) == {"swapped": 20, "catch": 2}


@pytest.mark.parametrize(
    ("rt", "seconds", "is_out"), [(None, 0.01, True), (5000.0, 0.01, True), (900.0, 8.0, True), (None, 8.0, False)]
)
def test_a_verdict_took_no_longer_than_the_server_saw(rt: float | None, seconds: float, is_out: bool) -> None:
    key = key_of("word_association")
    chosen = settings("word_association", "plain", fastest=1.0)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    times = [(begin + timedelta(seconds=at * seconds)).isoformat() for at in range(1, 7)]
    state = answered(*((f"t{at}", {"verdicts": ["human"], "rt": rt, "at": time}) for at, time in enumerate(times)))
    assert {"fastest" in row["rules"] for row in rows_of(state, chosen, key, {})} == {is_out}
