"""``turinglike trials --show-delays``: which messages show how long they took, and what cannot be shown blindly."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judging import trials as draw_trials
from judging.trial_sets.cues import delays, has_delays
from judging.trial_sets.trial_set import about_path, key_path, read_trial_key
from serving.cli import main
from tests.helpers.run_folders import agent_entry, stimulus, write_run
from tests.helpers.timed_talks import Delays, conversation, talks

TEXTS = ["Hi", "yes", "so", "no", "well", "bye"]


def person(chance: random.Random) -> float:
    return chance.expovariate(1 / 5)


def slow(chance: random.Random) -> float:
    return 10 + chance.expovariate(1 / 5)


def trials(out: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    key = read_trial_key(key_path(out))
    return [(row, key[row["id"]]) for row in map(json.loads, (out / "trials.jsonl").read_text().splitlines())]


def compose(*arguments: object) -> int:
    return main(["trials", *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return talks(tmp_path_factory.mktemp("runs") / "run", 30, people=person, machine=slow)


def test_each_message_but_the_first_shows_its_delay_in_tenths(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "T"
    assert compose(run, "--out", out, "--lengths", "3,6", "--seed", 1, "--show-delays") == 0
    truths: Counter[str] = Counter()
    for trial, key in trials(out):
        messages = trial["answer"]["messages"]
        known = key["delays"]["answer"]
        assert [message.get("delay_s") for message in messages] == [None, *(round(one, 1) for one in known[1:])]
        assert set(messages[0]) == {"speaker", "text"}
        truths[key["truth"]] += 1
    assert truths["human"] == truths["machine"] > 0
    notes = json.loads(about_path(out).read_bytes())
    assert notes["options"]["show_delays"] is True


def test_the_same_trials_are_drawn_without_delays(run: Path, tmp_path: Path) -> None:
    """Off by default, and then no file has a word of them."""
    made = [
        draw_trials(run, tmp_path / f"{shows}", task="conversation", lengths=[3], seed=4, show_delays=shows).path
        for shows in (True, False)
    ]
    with_delays, plain = ([trial for trial, _ in trials(out)] for out in made)
    assert any(map(has_delays, with_delays))
    for trial in with_delays:
        for message in trial["answer"]["messages"]:
            message.pop("delay_s", None)
    assert with_delays == plain
    for path in (made[1] / "trials.jsonl", about_path(made[1])):
        assert b"delay" not in path.read_bytes()


def in_a_run(folder: Path, records: dict[str, list[Any]], **stimuli: Any) -> Path:
    rows = [stimulus(name, "conversation", **fields) for name, fields in stimuli.items()]
    agents = {name: agent_entry("conversation") for name in records if name != "humans"}
    return write_run(folder / "run", rows, records, agents)


def test_excerpts_with_a_gap_are_left_out_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gap in the fifth message takes the first three with it, and whose the gap is does not matter. Else only long
    excerpts would be left out, and their number would say who is who. A delay below 0 is none."""
    known: Delays = [None, 2.0, 3.0, 4.0, 5.0, 6.0]
    with_gap: Delays = [1.0, 2.0, 3.0, 4.0, None, 6.0]
    backwards: Delays = [1.0, 2.0, 3.0, -4.0, 5.0, 6.0]
    people = ("human:1", "human:2")
    records = {
        "humans": [
            conversation(f"s{at}", people, TEXTS, of_message) for at, of_message in enumerate((known, with_gap, known))
        ],
        "alpha~alpha": [
            conversation(f"s{at}", ("alpha", "alpha"), TEXTS, of_message)
            for at, of_message in enumerate((known, backwards, known))
        ],
    }
    run = in_a_run(tmp_path, records, s0={}, s1={}, s2={})
    out = tmp_path / "T"
    assert compose(run, "--out", out, "--lengths", "3,6", "--seed", 1, "--every", "--show-delays") == 0
    said = capsys.readouterr().out
    assert "left out (excerpts that ask about people, with a delay that is not known): 4" in said
    assert "left out (excerpts that ask about alpha, with a delay that is not known): 4" in said
    drawn = Counter((key["truth"], key["stimulus"], key["length"]) for _, key in trials(out))
    of_stimuli = [(f"s{at}", length) for at in (0, 2) for length in (3, 6)]
    assert drawn == {(truth, *excerpt): 2 for truth in ("human", "machine") for excerpt in of_stimuli}
    for trial, _ in trials(out):
        assert all("delay_s" in message for message in trial["answer"]["messages"][1:])
    passed_over = json.loads(about_path(out).read_bytes())["passed_over"]
    assert sum(number for why, number in passed_over.items() if "delay" in why) == 8


def test_a_time_since_the_message_before_is_a_delay(tmp_path: Path) -> None:
    records: dict[str, list[Any]] = {}
    for name, agents in (("humans", ("human:1", "human:2")), ("alpha~alpha", ("alpha", "alpha"))):
        row = conversation("s0", agents, TEXTS, [None] * 6)
        for at, message in enumerate(row["answer"]["messages"]):
            message["at"] = 10.0 + 2.26 * at
        records[name] = [row]
    out = tmp_path / "T"
    assert compose(in_a_run(tmp_path, records, s0={}), "--out", out, "--lengths", "3", "--show-delays") == 0
    for trial, _ in trials(out):
        assert [message.get("delay_s") for message in trial["answer"]["messages"]] == [None, 2.3, 2.3]


def test_catch_trials_without_delays_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records: dict[str, list[Any]] = {
        "humans": [conversation("s0", ("human:1", "human:2"), TEXTS, [1.0] * 6)],
        "alpha~alpha": [conversation("s0", ("alpha", "alpha"), TEXTS, [1.0] * 6)],
        "catch~catch": [conversation("s0", ("catch", "catch"), TEXTS, [None] * 6) | {"kind": "control"}],
    }
    run = in_a_run(tmp_path, records, s0={})
    assert compose(run, "--out", tmp_path / "T", "--lengths", "3", "--catch", 1, "--show-delays") == 0
    said = capsys.readouterr().out
    assert "left out (catch trials with a delay that is not known): 2" in said
    assert "4 trials: 2 from people, 2 from 1 agent, 0 catch trials" in said


@pytest.mark.parametrize("side", ["people", "alpha"])
def test_a_side_without_delays_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str) -> None:
    unknown = [2.0, None, 2.0, 2.0, 2.0, 2.0]
    records = {
        "humans": [conversation("s0", ("human:1", "human:2"), TEXTS, unknown if side == "people" else [1.0] * 6)],
        "alpha~alpha": [conversation("s0", ("alpha", "alpha"), TEXTS, unknown if side == "alpha" else [1.0] * 6)],
        "beta~beta": [conversation("s0", ("beta", "beta"), TEXTS, [1.0] * 6)],
    }
    run = in_a_run(tmp_path, records, s0={})
    assert compose(run, "--out", tmp_path / "T", "--lengths", "3", "--show-delays") == 2
    said = capsys.readouterr().err
    assert f"or with one below 0 or above a day: 2 excerpts of {side}" in said
    assert not (tmp_path / "T").exists()
    assert compose(run, "--out", tmp_path / "T", "--lengths", "3") == 0
    code = compose(run, "--out", tmp_path / "U", "--lengths", "3", "--show-delays", "--agents", "beta")
    assert ("leave these agents out with agents (--agents)" in said) is (side == "alpha")
    assert code == (2 if side == "people" else 0)


def test_what_goes_with_no_delays_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose(run, "--out", tmp_path / "T", "--show-delays", "--task", "word") == 2
    assert "show_delays: only conversations have delays" in capsys.readouterr().err
    assert compose(run, "--out", tmp_path / "T", "--show-delays", "--lengths", "50") == 2
    assert "show_delays: the runs hold no conversations" in capsys.readouterr().err
    assert compose(run, "--out", tmp_path / "T", "--show-delays", "--lengths", "1") == 2
    assert "show_delays: the first message of an excerpt shows no delay: lengths from 2" in capsys.readouterr().err
    assert compose(run, "--out", tmp_path / "T", "--show-delays", "--pairs", "--show-pseudo") == 2
    assert "show_delays does not go with show_pseudo" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_pairs_show_the_delays_of_both_conversations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = [1.0, 2.04, 3.0, 4.0, 5.0, 6.0]
    late_gap = [1.0, 2.0, 3.0, 4.0, None, 6.0]
    early_gap = [1.0, None, 3.0, 4.0, 5.0, 6.0]
    people = ("human:1", "human:2")
    records = {
        "alpha~alpha": [
            conversation("s0", ("alpha", "alpha"), TEXTS, known),
            conversation("s1", ("alpha", "alpha"), TEXTS, early_gap),
            conversation("s2", ("alpha", "alpha"), TEXTS, known),
        ],
        "humans": [
            conversation("s0", people, TEXTS, late_gap),
            conversation("s1", people, TEXTS, known),
            conversation("s2", people, TEXTS, early_gap),
        ],
    }
    run = in_a_run(tmp_path, records, s0={"topic": "tea"}, s1={"topic": "sun"}, s2={"topic": "rain"})
    out = tmp_path / "T"
    assert compose(run, "--out", out, "--pairs", "--lengths", "3,6", "--every", "--show-delays") == 0
    [(trial, key)] = trials(out)
    assert (key["stimulus"], key["length"]) == ("s0", 3)
    sides = {key["truth"]: trial["answer"], key["beside_truth"]: trial["beside"]}
    assert [message.get("delay_s") for message in sides["machine"]["messages"]] == [None, 2.0, 3.0]
    assert [message.get("delay_s") for message in sides["human"]["messages"]] == [None, 2.0, 3.0]
    said = capsys.readouterr().out
    for turns, number in ((3, 1), (6, 1)):
        assert f"with a machine in whose first {turns} turns a delay is not known): {number}" in said
    assert "beside which all of people on the topic have a delay that is not known in the first 3 turns): 1" in said
    assert "beside which all of people on the topic have a delay that is not known in the first 6 turns): 2" in said
    assert compose(run, "--out", tmp_path / "U", "--pairs", "--lengths", "3", "--every") == 0
    assert not any(has_delays(trial) for trial, _ in trials(tmp_path / "U"))


def test_the_numbers_of_delays_are_of_the_judged_speaker() -> None:
    messages = [
        {"speaker": speaker, "text": "x", **({} if delay is None else {"delay_s": delay})}
        for speaker, delay in (("A", None), ("B", 2.0), ("A", 3.0), ("B", 5.0), ("A", 4.0))
    ]
    trial = {"asked": "conversation", "answer": {"messages": messages}}
    assert delays(trial | {"speaker": "B"}) == [3.5, 2.0, 5.0]
    assert delays(trial | {"speaker": "A"}) == [3.5, 3.0, 4.0]
    assert delays({"answer": {"messages": messages[:1]}, "speaker": "A"}) == [0.0, 0.0, 0.0]
    assert delays({"answer": {"word": "tea"}}) == [0.0, 0.0, 0.0]
    assert has_delays({"answer": {"messages": messages[:1]}, "beside": {"messages": messages}})
    assert not has_delays({"answer": {"messages": messages[:1]}, "speaker": "A"})


def test_the_set_says_what_delays_give_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = talks(tmp_path / "run", 40, people=lambda chance: float(chance.randint(1, 9)), machine=slow)
    out = tmp_path / "T"
    assert compose(run, "--out", out, "--lengths", "6", "--seed", 1, "--show-delays") == 0
    said = capsys.readouterr().out
    [entry] = json.loads(about_path(out).read_bytes())["blindness"]
    assert entry["delays"] is True
    assert entry["shown"]["detectability"] > 0.9
    assert "By the answers' length, numbers, delays and punctuation, it has" in said
    assert "difference of form: delays in whole seconds: 100% of people's answers" in said
    assert entry["hidden"]["p"] > 0.01
    plain = tmp_path / "U"
    assert compose(run, "--out", plain, "--lengths", "6", "--seed", 1) == 0
    [without] = json.loads(about_path(plain).read_bytes())["blindness"]
    assert without["shown"]["detectability"] < 0.65
    assert "By the answers' length, numbers and punctuation, it has" in capsys.readouterr().out


def test_versions_without_and_with_planted_delays(run: Path, tmp_path: Path) -> None:
    made = draw_trials(
        run, tmp_path / "T", lengths=[6], seed=2, without=["delay", "case"], plant="delay", show_delays=True
    )
    by_version: dict[str, dict[str, dict[str, Any]]] = {}
    keys = {}
    for trial, key in trials(made.path):
        by_version.setdefault(key["version"], {})[key["version_of"] or key["trial"]] = trial
        keys[trial["id"]] = key
    assert set(by_version) == {"", "case", "delay", "case+delay", "plant:delay"}
    seconds: dict[str, dict[str, list[float]]] = {version: {"human": [], "machine": []} for version in by_version}
    for version, of_version in by_version.items():
        for first, trial in of_version.items():
            drawn = by_version[""][first]
            for before, after in zip(drawn["answer"]["messages"], trial["answer"]["messages"], strict=True):
                if before["speaker"] != trial["speaker"] or version == "":
                    assert before == after
                elif version == "delay":
                    assert after == {"speaker": before["speaker"], "text": before["text"]}
            seconds[version][keys[trial["id"]]["truth"]].append(delays(trial)[0])
    assert set(seconds["delay"]["human"]) == set(seconds["case+delay"]["machine"]) == {0.0}
    assert sorted(seconds["plant:delay"]["human"]) == sorted(seconds[""]["human"])
    assert np.mean(seconds[""]["machine"]) - np.mean(seconds[""]["human"]) > 5
    assert abs(np.mean(seconds["plant:delay"]["machine"]) - np.mean(seconds[""]["human"])) < 1.5
