"""Pairs of conversations: from runs and people's imports to trials, verdicts and the pass rate."""

import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from tests.helpers import in_process
from tests.helpers import misbehaving_server as bad
from tests.helpers.run_folders import NOT_MODELLED, agent_entry, record, stimulus, write_run

TOPICS = ("music", "films", "food", "work", "dogs", "rain")
Talk = list[tuple[str, str]]  # (speaker, text)


def page(folder: Path, name: str, turns: int) -> Path:
    path = folder / f"{name}.html"
    path.write_text("".join(f"<p> {'AB'[at % 2]}: {name} says {at} </p>\n" for at in range(turns)))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Runs of eliza with herself, of people about all topics but the last, and of a person with eliza."""
    folder = tmp_path_factory.mktemp("made")
    rows = [{"id": f"talk-{topic}", "task": "conversation", "topic": topic, "exchanges": 12} for topic in TOPICS]
    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        in_process.without_ray(patch)
        assert (
            main(["generate", str(folder / "talks.jsonl"), "--agents", "eliza~eliza", "-o", str(folder / "run")]) == 0
        )
    pages = [str(page(folder, f"talk-{topic}", 6 if topic == "dogs" else 12)) for topic in TOPICS[:-1]]
    assert main(["import", *pages, "--name", "human~human", "-o", str(folder / "people")]) == 0
    again = str(page(folder, "talk-music", 11))
    assert main(["import", again, "--name", "human~eliza", "-o", str(folder / "mixed")]) == 0
    return folder / "run", folder / "people", folder / "mixed"


def trials(out: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    key = read_trial_key(key_path(out))
    return [(row, key[row["id"]]) for row in map(json.loads, (out / "trials.jsonl").read_text().splitlines())]


def test_conversations_with_machines_stand_beside_people_on_the_same_topic(
    made: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "T"
    assert main(["trials", *map(str, made), "--pairs", "--every", "--seed", "3", "-o", str(out)]) == 0
    result = trials(out)
    spoken = capsys.readouterr().out
    # Of six conversations of two machines one has no topic of people's, and of ten turns one no partner so long.
    cells = Counter(
        (key["agent"] if key["truth"] == "machine" else key["beside_agent"], key["turns"]) for _, key in result
    )
    assert cells == {("eliza~eliza", 3): 5, ("eliza~eliza", 10): 4, ("eliza", 3): 1, ("eliza", 10): 1}
    assert "(conversations with a machine about a topic that people did not talk about in ping-pong): 1\n" in spoken
    assert "(conversations with a machine whose topic people did not talk about for 10 turns): 1" in spoken
    first = Counter(key["truth"] for _, key in result if "eliza~eliza" in (key["agent"], key["beside_agent"]))
    assert {2, 3} >= {first["machine"] - 2, first["human"] - 2}  # halves of 5 and 4
    for trial, key in result:
        sides = {key["truth"]: trial["answer"]["messages"], key["beside_truth"]: trial["beside"]["messages"]}
        topic = key["meta.topic"]
        assert key["meta.mode"] == "ping-pong"
        assert len(sides["human"]) == len(sides["machine"]) == key["turns"] == key["length"]
        assert [item["text"] for item in sides["human"]] == [f"talk-{topic} says {at}" for at in range(key["turns"])]
        assert trial["question"] == "In which of the two conversations does a machine speak?"
        assert set(trial) == {"id", "task", "asked", "shown", "question", "answer", "beside"}
        assert all(set(item) == {"speaker", "text"} for item in (*sides["human"], *sides["machine"]))
        assert (trial["id"][0], trial["shown"][0]) == ("t", "s")  # numbers in a drawn order


def conversation(stimulus: str, agents: tuple[str, str], talk: Talk, **more: Any) -> dict[str, Any]:
    whose = dict(zip("AB", agents, strict=True))
    messages = [
        {**NOT_MODELLED, "turn": at, "speaker": speaker, "agent": whose[speaker], "text": text, "delay_s": 2.0 + at}
        for at, (speaker, text) in enumerate(talk)
    ]
    answer = {"messages": messages, "ended_early": False, "withdrawn": [], "pseudo": [], **more}
    kind = "machine" if any(agent == "bot" for agent in agents) else "human"
    changes = {"seed": None, "timing": None, "worker": None, "created": None} if kind == "human" else {}
    return record(stimulus, "conversation", "~".join(agents), answer=answer, kind=kind, **changes)


BURST: Talk = [("A", "a1"), ("A", "a2"), ("B", "b1"), ("A", "a3"), ("B", "b2"), ("B", "b3"), ("A", "a4")]  # 5 turns


@pytest.fixture
def bursts(tmp_path: Path) -> Path:
    """A person with a machine that wrote four turns itself, in bursts; people about one topic in bursts, too."""
    pseudo = [
        {"agent": "bot", "topic": topic, "speaker": speaker, "text": f"{topic} {speaker}"}
        for topic in ("tea", "sun", "who", "else")  # the last two by another of the same name
        for speaker in "BA"
    ]
    stimuli = [
        stimulus("s1", "conversation", topic="Music", mode="burst", pseudo={"topics": 2, "turns": 2}),
        stimulus("s2", "conversation", topic="music"),
        stimulus("s3", "conversation", topic="films", mode="burst"),
        stimulus("s4", "conversation", topic="films"),
    ]
    by_turns: Talk = [("AB"[at % 2], f"p{at}") for at in range(12)]
    long: Talk = [(speaker, f"{at} {text}") for at in range(3) for speaker, text in BURST[:-1]]
    records = {
        "human~bot": [
            conversation("s1", ("human:1", "bot"), BURST, pseudo=pseudo),
            conversation("s3", ("human:1", "bot"), BURST),
        ],
        "humans": [
            conversation("s1", ("human:2", "human:3"), long),
            conversation("s2", ("human:2", "human:3"), by_turns),
            conversation("s4", ("human:2", "human:3"), by_turns),
        ],
    }
    return write_run(tmp_path / "run", stimuli, records, {"human~bot": agent_entry("conversation")})


def test_turns_of_bursts_have_several_messages_and_what_a_machine_wrote_itself_counts(
    bursts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "T"
    assert main(["trials", str(bursts), "--pairs", "--lengths", "3", "-o", str(out)]) == 0
    [(trial, key)] = trials(out)
    sides = {key["truth"]: trial["answer"], key["beside_truth"]: trial["beside"]}
    assert [item["text"] for item in sides["machine"]["messages"]] == ["a1", "a2", "b1", "a3"]
    assert [item["text"] for item in sides["human"]["messages"]] == ["0 a1", "0 a2", "0 b1", "0 a3"]
    assert (key["turns"], key["length"], key["meta.mode"]) == (4 + 3, 3, "burst")
    assert key["speaker" if key["truth"] == "machine" else "beside_speaker"] == "B"
    assert key["delays"]["answer"] == key["delays"]["beside"] == [2.0, 3.0, 4.0, 5.0]
    assert (
        "(conversations with a machine about a topic that people did not talk about in burst): 1"
        in capsys.readouterr().out
    )


def test_what_a_machine_wrote_itself_is_shown_if_asked_for(bursts: Path, tmp_path: Path) -> None:
    out = tmp_path / "T"
    assert main(["trials", str(bursts), "--pairs", "--lengths", "3", "--show-pseudo", "-o", str(out)]) == 0
    [(trial, key)] = trials(out)
    sides = {key["truth"]: trial["answer"], key["beside_truth"]: trial["beside"]}
    spoken = [(item["speaker"], item["text"]) for item in sides["machine"]["messages"]]
    # B began, who is shown as A, as in every conversation.
    assert spoken[:4] == [("A", "tea B"), ("B", "tea A"), ("A", "sun B"), ("B", "sun A")]
    assert spoken[4:] == [("B", "a1"), ("B", "a2"), ("A", "b1"), ("B", "a3")]
    speakers = [item["speaker"] for item in sides["human"]["messages"]]
    assert key["turns"] == key["length"] == 7 == 1 + sum(item != other for item, other in pairwise(speakers))
    assert key["speaker" if key["truth"] == "machine" else "beside_speaker"] == "A"


def test_turns_that_the_stimulus_gives_are_nobodys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the first three turns the machine has said nothing, and there is nothing to tell."""
    history = [{"speaker": speaker, "text": "given"} for speaker in "ABA"]
    talk = [("AB"[at % 2], f"said {at}") for at in range(6)]
    stimuli = [
        stimulus("s1", "conversation", topic="tea", history=history),
        stimulus("s2", "conversation", topic="tea"),
    ]
    records = {
        "human~bot": [conversation("s1", ("human:1", "bot"), [("B", "at last"), *talk])],
        "humans": [conversation("s2", ("human:2", "human:3"), talk)],
    }
    run = write_run(tmp_path / "run", stimuli, records, {"human~bot": agent_entry("conversation")})
    assert main(["trials", str(run), "--pairs", "--lengths", "3,4", "-o", str(tmp_path / "T")]) == 0
    assert [key["turns"] for _, key in trials(tmp_path / "T")] == [4]
    assert "(conversations in whose first 3 turns the machine says nothing of its own): 1" in capsys.readouterr().out


def test_a_conversation_has_one_partner_at_all_lengths(tmp_path: Path) -> None:
    talk = [("AB"[at % 2], f"said {at}") for at in range(10)]
    records = {
        "human~bot": [conversation(f"s{at}", ("human:1", "bot"), talk) for at in range(6)],
        "humans": [conversation(f"s{at}", ("human:2", "human:3"), talk[: 4 if at < 6 else 10]) for at in range(12)],
    }
    stimuli = [stimulus(f"s{at}", "conversation", topic="tea") for at in range(12)]
    run = write_run(tmp_path / "run", stimuli, records, {"human~bot": agent_entry("conversation")})
    assert main(["trials", str(run), "--pairs", "--lengths", "3,10", "--seed", "1", "-o", str(tmp_path / "T")]) == 0
    partners = {(key["stimulus"], key["meta.people"]) for _, key in trials(tmp_path / "T")}
    assert len(partners) == len({people for _, people in partners}) == 6


def test_no_list_has_a_conversation_of_people_twice_and_messages_are_on_one_line(tmp_path: Path) -> None:
    """Which stands beside two machines is people's."""
    names = [(topic, f"{topic}-{at}") for topic in TOPICS for at in range(2)]
    talk = [(speaker, f"said\n {speaker} ") for speaker in "ABA"]
    records = {
        "human~bot": [conversation(name, ("human:1", "bot"), talk) for _, name in names],
        "humans": [
            conversation(f"{topic}-0", ("human:2", "human:3"), [(item, f"{topic} ") for item in "ABA"])
            for topic in TOPICS
        ],
    }
    stimuli = [stimulus(name, "conversation", topic=topic) for topic, name in names]
    run = write_run(tmp_path / "run", stimuli, records, {"human~bot": agent_entry("conversation")})
    asked = ["--pairs", "--lengths", "3", "--lists", "8", "--per-judge", "6", "--seed", "1"]
    assert main(["trials", str(run), *asked, "-o", str(tmp_path / "T")]) == 0
    result = {trial["id"]: (trial, key) for trial, key in trials(tmp_path / "T")}
    for line in (tmp_path / "T" / "lists.jsonl").read_text().splitlines():
        chosen = [result[name] for name in json.loads(line)["trials"]]
        assert len({key["meta.people"] for _, key in chosen}) == len({key["meta.topic"] for _, key in chosen}) == 6
        assert sum(key["truth"] == "machine" for _, key in chosen) == 3  # the machine speaks in the first of half
    texts = [item["text"] for trial, _ in result.values() for item in trial["answer"]["messages"]]
    assert not any("\n" in text or text != text.strip() for text in texts)


@pytest.mark.parametrize(
    ("more", "server"),
    [
        (["--pairs", "--task", "word"], "pairs are of conversations"),
        (["--show-pseudo"], "show_pseudo does not go without pairs"),
        (["--pairs", "--agents", "elisa"], "the runs hold no answers of theirs, but of eliza, eliza~eliza"),
        (["--pairs", "--lengths", "99"], "no conversation with a machine can be paired"),
    ],
)
def test_what_cannot_be_paired_is_refused(
    made: tuple[Path, Path, Path], tmp_path: Path, more: list[str], server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trials", *map(str, made), *more, "-o", str(tmp_path / "T")]) == 2
    assert server in capsys.readouterr().err
    assert not (tmp_path / "T").exists()


def test_from_runs_and_imports_to_one_page_of_pass_rates(
    made: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge that is always right, and two hundred people who are right at known rates."""
    in_process.without_ray(monkeypatch)
    out = tmp_path / "T"
    verdicts = tmp_path / "V"
    asked = ["--pairs", "--every", "--agents", "eliza~eliza", "--seed", "1", "-o", str(out)]
    assert main(["trials", *map(str, made), *asked]) == 0

    def by_what_is_said(request: bad.Request) -> bad.Act:
        first = request.body["messages"][-1]["content"].partition("Conversation 2:")[0]
        return bad.answer(json.dumps({"reason": "x", "verdict": 2 if re.search(r"talk-\w+ says", first) else 1}))

    with bad.running() as server:
        server.otherwise = by_what_is_said
        judge = ["--judges", "llm-judge-openai", "--set", f"llm-judge-openai.base_url={server.url}"]
        assert main(["judge", str(out), *judge, "-o", str(verdicts)]) == 0
    right = {3: 0.481, 10: 0.611}
    chance = random.Random(0)
    lines = ["stimulus,subject,response"]
    for trial, key in trials(out):
        for at in range(200):
            spoken = key["truth"] if chance.random() < right[key["turns"]] else key["beside_truth"]
            lines.append(f"{trial['id']},{at},{spoken}")
    (tmp_path / "people.csv").write_text("\n".join(lines))
    assert main(["import", str(tmp_path / "people.csv"), "--task", "judgement", "-o", str(verdicts)]) == 0
    capsys.readouterr()
    assert main(["score", str(verdicts), "-o", str(tmp_path / "S")]) == 0
    spoken = capsys.readouterr().out
    result = json.loads((tmp_path / "S" / "scores.json").read_text())
    assert result["scores"] == []  # no single speakers
    rates = {(row["judge"], row["turns"]): row for row in result["pairs"]["rates"]}
    for turns, number in ((3, 5), (10, 4)):
        machine = rates["llm-judge-openai", turns]
        people = rates["people", turns]
        assert (machine["pass_rate"], machine["pairs"], machine["interval"]) == (0, number, "exact")
        assert (people["pairs"], people["judges"], people["verdicts"]) == (number, 200, 200 * number)
        assert people["pass_rate_low"] < 1 - right[turns] < people["pass_rate_high"]
        assert f"{people['pass_rate']:.2f} (" in spoken
        assert f"{people['pass_rate']:.2f} <small>" in (tmp_path / "S" / "index.html").read_text()
    table = pd.read_csv(tmp_path / "S" / "pass_rates.csv")
    assert table["pass_rate"].tolist() == [row["pass_rate"] for row in result["pairs"]["rates"]]
    assert main(["judge", str(out), "--judges", "cue-length", "-o", str(tmp_path / "W")]) == 2
    assert "pairs of conversations are judged by people and language models" in capsys.readouterr().err
