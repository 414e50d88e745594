"""Pass rates corrected for conversations that people did not write: closed forms, own recounts, files."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.errors import InputError
from judging import score
from judging.contamination.asked import KnownRate, Traced
from judging.contamination.marks import AnswerKey
from judging.contamination.pairs import ContaminatedPairs, contaminated_pairs, pass_rate_by_known_rate, shows_any
from judging.contamination.rate import Rate
from judging.contamination.rate_of_task import RateOfTask
from judging.statistics.jackknife import Floats
from judging.statistics.tables import Estimate
from serving.cli import main
from tests.helpers.made_runs import Folder
from tests.helpers.run_folders import NOT_MODELLED
from tests.judging.contamination.test_marks import TYPED

JUDGES = 12
TOPICS = 30
UNKNOWN = 7  # of this topic nobody has traces
FIELD = Traced(Path("export"))


def _is_foreign(topic: int) -> bool:
    return topic % 3 == 0


def _verdicts(seed: int = 1, agents: tuple[str, ...] = ("bot",)) -> pd.DataFrame:
    """Each judge judges a pair about each topic; beside foreign conversations by chance, else 3 of 4 are right."""
    chance = np.random.default_rng(seed)
    rows = []
    for judge in range(JUDGES):
        for topic in range(TOPICS):
            truth, other = ("machine", "human") if (topic + judge) % 2 else ("human", "machine")
            is_right = chance.random() < (0.5 if _is_foreign(topic) else 0.75)
            agent = agents[topic % len(agents)]
            people = f"human:{topic}a~human:{topic}b"
            row = {"judge": f"human:{judge}", "judge_kind": "human", "trial": f"t{topic}-{judge % 2}", "sample": 0}
            row |= {"stimulus": f"talk {topic}", "truth": truth, "beside_truth": other, "turns": 3}
            row |= {"agent": agent if truth == "machine" else people}
            row |= {"beside_agent": people if truth == "machine" else agent}
            row |= {"meta.people": f"my run talk {topic} {people} 0", "meta.mode": "burst"}
            rows.append(row | {"verdict": truth if is_right else other})
    return pd.DataFrame(rows)


def _rate_of_task(of_patterns: list[float], rate: float) -> RateOfTask:
    """Topic t has patterns t % 3 and 2 of its two participants, foreign with the probabilities ``of_patterns``."""
    posterior = np.tile(of_patterns, (7, 1))
    found = Rate(Estimate(rate, rate, rate), rates=np.full(7, rate), posterior=posterior)
    pattern_of = {}
    for topic in range(TOPICS):
        for speaker, pattern in (("A", topic % 3), ("B", 2)):
            known = -1 if topic == UNKNOWN and speaker == "A" else pattern
            people = f"human:{topic}a~human:{topic}b"
            pattern_of[AnswerKey("conversation", people, f"talk {topic}", 0, speaker)] = known
    return RateOfTask(found, 2 * TOPICS, 2 * TOPICS, 10, pattern_of)


def _wrong(verdicts: pd.DataFrame) -> Floats:
    return (verdicts["verdict"] != verdicts["truth"]).to_numpy(dtype=float)


def _topics(verdicts: pd.DataFrame) -> list[int]:
    return [int(stimulus.removeprefix("talk ")) for stimulus in verdicts["stimulus"]]


def test_where_foreign_conversations_are_known_the_others_are_counted() -> None:
    verdicts = _verdicts()
    [row] = contaminated_pairs(verdicts, FIELD, _rate_of_task([1.0, 0.0, 0.0], 0.0))
    assert row.pass_rate.value == pytest.approx(_wrong(verdicts).mean())
    known = verdicts[[topic != UNKNOWN for topic in _topics(verdicts)]]
    is_foreign = np.array([_is_foreign(topic) for topic in _topics(known)])
    wrong = _wrong(known)
    assert row.pass_rate_corrected.value == pytest.approx(wrong[~is_foreign].mean())
    assert row.pass_rate_foreign == pytest.approx(wrong[is_foreign].mean())
    assert row.pass_rate_corrected.low < wrong[~is_foreign].mean() < row.pass_rate_corrected.high
    assert (row.judge, row.agent, row.turns, row.mode, row.source) == ("people", "bot", 3, "burst", "traces")
    assert (row.pairs, row.verdicts, row.foreign_pairs) == (2 * TOPICS, TOPICS * JUDGES, 2 * TOPICS / 3)
    assert row.judged_without_traces == JUDGES


def test_a_conversation_is_foreign_if_either_participant_is() -> None:
    """The line through 1 minus the product of both probabilities to be own, without pairs of people without traces."""
    of_patterns = [0.9, 0.1, 0.05]
    verdicts = _verdicts()
    [row] = contaminated_pairs(verdicts, FIELD, _rate_of_task(of_patterns, 0.15))
    known = verdicts[[topic != UNKNOWN for topic in _topics(verdicts)]]
    either = [1 - (1 - of_patterns[topic % 3]) * (1 - of_patterns[2]) for topic in _topics(known)]
    slope, level = np.polyfit(either, _wrong(known), 1)
    assert row.pass_rate_corrected.value == pytest.approx(level)
    assert row.pass_rate_at_low == row.pass_rate_at_high == pytest.approx(level)
    assert row.pass_rate_foreign == pytest.approx(np.clip(level + slope, 0, 1))


def test_without_foreign_conversations_all_is_as_it_was() -> None:
    verdicts = _verdicts(agents=("bot", "other"))
    verdicts = verdicts[[topic != UNKNOWN for topic in _topics(verdicts)]]
    by_traces = contaminated_pairs(verdicts, FIELD, _rate_of_task([0.0, 0.0, 0.0], 0.0))
    by_rate = contaminated_pairs(verdicts, KnownRate(0.0, 0.0), None)
    assert [row.agent for row in by_traces] == [row.agent for row in by_rate] == ["all", "bot", "other"]
    for row in (*by_traces, *by_rate):
        before = (row.pass_rate.value, row.pass_rate.low, row.pass_rate.high)
        after = (row.pass_rate_corrected.value, row.pass_rate_corrected.low, row.pass_rate_corrected.high)
        assert after == pytest.approx(before)


def test_the_truth_is_in_nineteen_of_twenty_intervals() -> None:
    """Foreign conversations that marks tell but in part: p(own) is 0.25, and the plain rate is higher."""
    held = []
    of_patterns = [1.0, 0.0, 0.0]
    for study in range(60):
        [row] = contaminated_pairs(_verdicts(study), FIELD, _rate_of_task(of_patterns, 0.0))
        held.append(row.pass_rate_corrected.low <= 0.25 <= row.pass_rate_corrected.high)
    assert sum(held) >= 53


def test_a_known_rate_gives_the_closed_form() -> None:
    """c of the participants write no messages of their own: 1 - (1 - c)² of the conversations are foreign."""
    plain = Estimate(0.3, 0.2, 0.42)
    found = pass_rate_by_known_rate(plain, (0.1, 0.1))
    foreign = 1 - 0.9**2
    wanted = [(end - foreign / 2) / (1 - foreign) for end in (0.3, 0.2, 0.42)]
    corrected = found["pass_rate_corrected"]
    assert (corrected.value, corrected.low, corrected.high) == pytest.approx(wanted)
    # so that the mixture of corrected and foreign is what was seen
    assert (1 - foreign) * corrected.value + foreign * found["pass_rate_foreign"] == pytest.approx(0.3)
    both = pass_rate_by_known_rate(plain, (0.0, 0.2))
    assert both["pass_rate_corrected"].value == pytest.approx(corrected.value)
    assert both["pass_rate_corrected"].high == pytest.approx(0.42)  # above that nothing is corrected
    assert both["pass_rate_corrected"].low == pytest.approx((0.2 - 0.36 / 2) / 0.64)
    assert (both["pass_rate_at_low"], both["pass_rate_at_high"]) == pytest.approx((0.3, (0.3 - 0.18) / 0.64))
    for none in (Estimate(0.02, 0.0, 0.05), Estimate(0.02)):
        assert np.isnan(pass_rate_by_known_rate(none, (0.1, 0.3))["pass_rate_corrected"].value)


def test_a_single_judge_of_several_has_no_interval() -> None:
    verdicts = _verdicts(agents=("bot", "other"))
    verdicts = verdicts[
        (verdicts["judge"] == "human:0") | (verdicts["stimulus"].map(lambda name: int(name[5:]) % 2 == 0))
    ]
    rows = {row.agent: row for row in contaminated_pairs(verdicts, FIELD, _rate_of_task([0.9, 0.1, 0.0], 0.1))}
    assert not np.isnan(rows["bot"].pass_rate_corrected.low)
    row = rows["other"]
    assert 0 < row.pass_rate_corrected.value < 1
    assert np.isnan([row.pass_rate.low, row.pass_rate_corrected.low, row.pass_rate_corrected.high]).all()


def test_pairs_of_other_conversations_are_not_known() -> None:
    verdicts = _verdicts()
    of_task = _rate_of_task([1.0, 0.0, 0.0], 0.2)
    assert shows_any(verdicts, of_task)
    others = verdicts.assign(**{"meta.people": "my run another talk human:x~human:y 0"})
    assert not shows_any(others, of_task)
    assert not shows_any(verdicts.drop(columns="meta.people"), of_task)
    for table in (others, verdicts.drop(columns="meta.people")):
        [row] = contaminated_pairs(table, FIELD, of_task)
        assert row.judged_without_traces == row.verdicts
        assert np.isnan(row.pass_rate_corrected.value)
        assert "has traces of both participants" in row.why


def test_without_traces_of_conversations_there_is_no_figure() -> None:
    [row] = contaminated_pairs(_verdicts(), FIELD, None)
    assert row.why == "no answer to this task has traces"
    assert np.isnan(row.pass_rate_corrected.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations of people, a third of them with one who pastes, beside those of machines, judged by people."""
    folder = tmp_path_factory.mktemp("pairs")
    chance = random.Random(3)
    made = Folder(folder)
    made.agent("eliza~eliza", "conversation")
    for topic in range(TOPICS):
        row = made.ask("conversation", f"talk-{topic}", topic=f"topic {topic}", exchanges=3)
        people = (f"human:{topic:02}a", f"human:{topic:02}b")
        made.record("~".join(people), row, _talk(people), kind="human", raw=_raw(topic, chance))
        made.record("eliza~eliza", row, _talk(("eliza", "eliza")))
    run = made.write()
    drawn = ["--pairs", "--lengths", "3", "--every", "--seed", "1", "--out", str(folder / "T")]
    assert main(["trials", str(run), *drawn]) == 0
    lines = ["stimulus,subject,response"]
    for trial in _key(folder):
        topic = int(trial["stimulus"].removeprefix("talk-"))
        for judge in range(JUDGES):
            is_right = chance.random() < (0.5 if _is_foreign(topic) else 0.85)
            other = {"machine": "human", "human": "machine"}[trial["truth"]]
            lines.append(f"{trial['trial']},j{judge},{trial['truth'] if is_right else other}")
    (folder / "verdicts.csv").write_text("\n".join(lines))
    judged = ["import", str(folder / "verdicts.csv"), "--task", "judgement", "--out", str(folder / "V")]
    assert main(judged) == 0
    return folder


def _talk(speakers: tuple[str, str]) -> dict[str, Any]:
    messages = [
        {"turn": turn, "speaker": "AB"[turn % 2], "agent": speakers[turn % 2], "text": f"it is {turn}", **NOT_MODELLED}
        for turn in range(4)
    ]
    return {"messages": messages, "ended_early": False}


def _raw(topic: int, chance: random.Random) -> dict[str, Any]:
    """Traces and checks of four messages; of a foreign conversation those of speaker B are pasted."""
    traces: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    copied = chance.random() < 0.8
    for turn in range(4):
        is_pasted = _is_foreign(topic) and turn % 2 == 1
        of_message: dict[str, Any] = {**TYPED}
        if is_pasted:
            of_message |= {"pasted_characters": 36, "keys": 0, "characters_per_s": None, "hidden_ms": 9000}
        elif chance.random() < 0.1:
            of_message["hidden_ms"] = 9000
        traces.append(of_message)
        checks.append({"copied_instruction": is_pasted and copied})
    return {"traces": traces, "checks": checks}


def _key(folder: Path) -> list[dict[str, str]]:
    with (folder / "T.key.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _by_kind(folder: Path) -> tuple[Floats, Floats]:
    """The wrong verdicts beside foreign conversations, and beside own ones."""
    trials = {trial["trial"]: trial for trial in _key(folder)}
    kinds: tuple[list[float], list[float]] = ([], [])
    with (folder / "verdicts.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            trial = trials[row["stimulus"]]
            is_own = not _is_foreign(int(trial["stimulus"].removeprefix("talk-")))
            kinds[is_own].append(float(row["response"] != trial["truth"]))
    return np.array(kinds[0]), np.array(kinds[1])


def test_traces_of_conversations_correct_pass_rates(folder: Path) -> None:
    plain = score(folder / "V", key=folder / "T.key.csv")
    corrected = score(folder / "V", key=folder / "T.key.csv", contamination=folder / "run")
    foreign, own = _by_kind(folder)
    [row] = corrected.tables.contamination_pairs
    assert plain.tables.pairs is not None
    [before] = plain.tables.pairs.rates
    assert (row.pass_rate, row.pairs, row.verdicts) == (before.pass_rate, before.pairs, before.verdicts)
    assert (row.persons, row.answers, row.judged_without_traces) == (2 * TOPICS, 2 * TOPICS, 0)
    assert row.rate.low < 1 / 6 < row.rate.high
    assert (row.foreign_answers, row.foreign_pairs) == (TOPICS / 3, TOPICS / 3)
    assert row.pass_rate.value == pytest.approx(np.concatenate([foreign, own]).mean())
    assert row.pass_rate.value > own.mean() + 0.05
    assert row.pass_rate_corrected.value == pytest.approx(own.mean(), abs=0.03)
    assert row.pass_rate_foreign == pytest.approx(foreign.mean(), abs=0.03)
    assert row.pass_rate_corrected.low < own.mean() < row.pass_rate_corrected.high
    assert not corrected.tables.contamination
    after = corrected.tables.by_name()
    assert len(after.pop("contamination_pairs")) == 1
    for name, table in after.items():
        assert list(map(str, table.records())) == list(map(str, plain.tables.by_name()[name].records())), name
    assert any("the messages of either participant are" in sentence for sentence in corrected.sentences())


def test_the_command_writes_the_table_of_pairs(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "S"
    command = ["score", str(folder / "V"), "--key", str(folder / "T.key.csv"), "--out", str(out)]
    assert main([*command, "--contamination", "0.1"]) == 0
    with (out / "contamination_pairs.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    observed = np.concatenate(_by_kind(folder)).mean()
    assert float(row["pass_rate"]) == pytest.approx(observed)
    assert float(row["pass_rate_corrected"]) == pytest.approx((observed - 0.19 / 2) / 0.81)
    assert (row["source"], float(row["pass_rate_foreign"]), row["agent"]) == ("known rate", 0.5, "eliza~eliza")
    [found] = json.loads((out / "scores.json").read_bytes())["contamination_pairs"]
    assert found["pairs"] == TOPICS
    page = (out / "index.html").read_text(encoding="utf-8")
    assert 'id="contamination"' in page
    assert "<h3>Pairs of conversations</h3>" in page
    assert "about 19 % of them; judges are taken to guess there" in page
    assert main([*command, "--force"]) == 0
    assert not (out / "contamination_pairs.csv").exists()
    assert "contamination_pairs" not in json.loads((out / "scores.json").read_bytes())


def test_pairs_have_no_answers_like_foreign_ones(folder: Path) -> None:
    with pytest.raises(InputError, match="no answers of eliza were judged"):
        score(folder / "V", key=folder / "T.key.csv", contamination=0.1, pasted_like="eliza")


def test_the_words_of_a_row() -> None:
    figures: dict[str, Any] = {"judge": "people", "source": "known rate", "pairs": 1, "verdicts": 1}
    row = ContaminatedPairs(agent="all", pass_rate_at_low=0.3, pass_rate_at_high=0.2, **figures)
    assert (row.name, row.at_ends, str(row.of_foreign)) == ("all agents", "0.30 to 0.20", "–")
    assert ContaminatedPairs(agent="bot", **figures).at_ends == "–"
