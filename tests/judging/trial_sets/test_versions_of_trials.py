"""``turinglike trials --without`` and ``--plant``: versions of the drawn answers in one blinded set."""

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.stimuli import TASKS, ShownAnswer
from judging import trials as draw_trials
from judging.statistics.verdict_table import as_drawn
from judging.tells.registry import TRANSFORMATIONS
from judging.tells.seen import SeenAnswer, seen_in
from judging.trial_sets.trial_set import COLUMNS, VERSION_COLUMNS, about_path, key_path, read_trial_key
from serving.cli import main
from tests.helpers.run_folders import agent_entry, record, stimulus, write_run
from tests.judging.trial_sets.test_trials import AGENTS, PERSON, compose, runs, trials

WITHOUT = "length,case,path_length,first_fixation,punctuation"
OF_CAPTIONS = ["", "punctuation", "case", "length", "punctuation+case+length"]
OF_CAPTIONS += ["case+length", "punctuation+length", "punctuation+case", "plant:case"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs(tmp_path_factory.mktemp("runs"), 12)


@pytest.fixture(scope="module")
def out(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trials") / "T"
    assert compose(run, "--out", out, "--lengths", "3,6", "--seed", 5, "--without", WITHOUT, "--plant", "case") == 0
    return out


def by_version(out: Path, task: str) -> dict[str, dict[str, tuple[dict[str, Any], dict[str, str]]]]:
    """By version, and within by the trial of version "", the trial and its row of the key."""
    found: dict[str, dict[str, tuple[dict[str, Any], dict[str, str]]]] = defaultdict(dict)
    for trial, key in trials(out):
        if trial["asked"] == task and key["catch"] == "0":
            found[key["version"]][key["version_of"] or key["trial"]] = (trial, key)
    return found


def test_every_answer_is_there_in_every_version(out: Path) -> None:
    captions = by_version(out, "image_captioning")
    assert sorted(captions) == sorted(OF_CAPTIONS)
    assert sorted(by_version(out, "word_association")) == sorted(OF_CAPTIONS)
    paths = by_version(out, "attention_prediction")
    assert len(paths) == 8
    assert "first_fixation+length+path_length" in paths
    for task in TASKS:
        versions = by_version(out, task)
        for version, answers in versions.items():
            assert answers.keys() == versions[""].keys()
            for first, (trial, key) in answers.items():
                drawn, its_key = versions[""][first]
                same = ("truth", "agent", "stimulus", "run", "record", "sample", "speaker", "length", "columns")
                assert [key[name] for name in same] == [its_key[name] for name in same]
                assert {**trial, "id": 0, "answer": 0, "clip": 0} == {**drawn, "id": 0, "answer": 0, "clip": 0}
                assert (key["version_of"] == "") == (version == "")
                seen = seen_in(trial)
                if version in TRANSFORMATIONS:
                    TRANSFORMATIONS[version].check(seen_in(drawn), seen)
                if version == "plant:case" and key["truth"] == "human":
                    assert trial["answer"] == drawn["answer"]


def test_answers_that_were_matched_are_in_blocks_of_whole_stimuli(out: Path, run: Path, tmp_path: Path) -> None:
    for task in TASKS:
        versions = by_version(out, task)
        block_of: dict[str, str] = {}
        for answers in versions.values():
            for _, key in answers.values():
                assert block_of.setdefault(key["stimulus"], key["block"]) == key["block"]
        assert len(set(block_of.values())) >= min(len(block_of), 2)
        assert all(block.isdigit() for block in block_of.values())
    rows = read_trial_key(key_path(out))
    assert {row["block"] for row in rows.values() if row["catch"]} == {None}
    plain = tmp_path / "T"
    assert compose(run, "--out", plain, "--task", "caption", "--seed", 5, "--without", "case") == 0
    assert {row["block"] for row in read_trial_key(key_path(plain)).values()} == {None}  # nothing is matched


def test_the_answers_as_drawn_are_those_without_versions(out: Path, run: Path, tmp_path: Path) -> None:
    plain = tmp_path / "T"
    assert compose(run, "--out", plain, "--lengths", "3,6", "--seed", 5) == 0
    with key_path(plain).open(newline="") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
    with key_path(out).open(newline="") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS + VERSION_COLUMNS

    def answers(folder: Path) -> list[str]:
        rows = [(trial, key) for trial, key in trials(folder) if not key.get("version")]
        return sorted(
            json.dumps([trial["answer"], key["stimulus"], key["record"], key["catch"]]) for trial, key in rows
        )

    assert answers(out) == answers(plain)
    notes = json.loads(about_path(plain).read_bytes())
    assert "versions" not in notes
    assert not {"without", "plant"} & notes["options"].keys()
    assert {row["version"] for row in read_trial_key(key_path(plain)).values()} == {None}


def test_scanpaths_have_a_clip_of_their_version(out: Path) -> None:
    versions = by_version(out, "attention_prediction")
    clips = set()
    for answers in versions.values():
        for trial, _ in answers.values():
            clips.add(trial["clip"])
            assert trial["clip"] == f"media/{trial['id']}.gif"
    assert len(clips) == len(versions) * len(versions[""])
    by_answer: dict[str, set[bytes]] = defaultdict(set)
    for answers in versions.values():
        for trial, _ in answers.values():
            by_answer[json.dumps([trial["image"], trial["answer"]])].add((out / trial["clip"]).read_bytes())
    assert {len(files) for files in by_answer.values()} == {1}
    assert len(by_answer) < len(clips)  # paths that begin at the centre already, and so on
    first, other = (versions[name] for name in ("", "first_fixation"))
    differing = [name for name in first if first[name][0]["answer"] != other[name][0]["answer"]]
    assert differing
    for name in differing[:3]:
        shown = [list(_frames(out / answers[name][0]["clip"])) for answers in (first, other)]
        assert shown[0] != shown[1]


def _frames(path: Path) -> list[bytes]:
    with PILImage.open(path) as clip:
        frames = []
        for number in range(getattr(clip, "n_frames", 1)):
            clip.seek(number)
            frames.append(clip.convert("RGB").tobytes())
        return frames


def test_ids_are_mixed_over_all_versions(out: Path) -> None:
    """Where ids went version by version, their order would tell which is which: by ranks of Kruskal and Wallis."""
    from scipy.stats import kruskal

    places = [
        [int(trial["id"][1:]) for trial, _ in answers.values()] for answers in by_version(out, "conversation").values()
    ]
    assert kruskal(*places).pvalue > 0.001


def test_the_set_says_what_was_changed(out: Path) -> None:
    notes = json.loads(about_path(out).read_bytes())
    assert notes["options"]["without"] == WITHOUT.split(",")
    assert notes["options"]["plant"] == ["case"]
    assert notes["versions"]["names"]["image_captioning"] == OF_CAPTIONS
    for row in notes["versions"]["transformations"]:
        versions = by_version(out, row["task"])
        changed: Counter[str] = Counter()
        number: Counter[str] = Counter()
        for first, (trial, key) in versions[row["version"]].items():
            group = "participants" if key["truth"] == "human" else key["agent"]
            number[group] += 1
            changed[group] += trial["answer"] != versions[""][first][0]["answer"]
        assert row["answers"] == {"participants": number.pop("participants"), "agents": dict(number)}
        assert row["changed"] == {
            "participants": changed["participants"],
            "agents": {name: changed[name] for name in AGENTS},
        }
    # Words are small already, by the rules of all trials.
    [words] = [
        row
        for row in notes["versions"]["transformations"]
        if (row["task"], row["version"]) == ("word_association", "case")
    ]
    assert words["changed"] == {"participants": 0, "agents": {"alpha": 0, "beta": 0}}
    entries = [(entry["asked"], entry["version"]) for entry in notes["blindness"]]
    assert len(entries) == len(set(entries))
    assert {version for task, version in entries if task == "image_captioning"} == set(OF_CAPTIONS)


def test_all_is_in_one_list_and_catch_trials_once(out: Path) -> None:
    lists = [json.loads(line) for line in (out / "lists.jsonl").read_text().splitlines()]
    assert [entry["list"] for entry in lists] == [f"{task}-all" for task in TASKS]
    keys = {key["trial"]: key for _, key in trials(out)}
    assert sorted(name for entry in lists for name in entry["trials"]) == sorted(keys)
    catch = [key for key in keys.values() if key["catch"] == "1"]
    assert {key["version"] for key in catch} == {""}
    assert {key["version_of"] for key in catch} == {""}


def test_a_judges_list_has_an_answer_once_and_versions_equally(tmp_path: Path) -> None:
    out = tmp_path / "T"
    run = runs(tmp_path, 40)
    options = ("--task", "caption,word", "--per-judge", 12, "--lists", 8, "--repeats", 0.25, "--seed", 3)
    assert compose(run, "--out", out, *options, "--without", "case,length", "--plant", "punctuation") == 0
    keys = {key["trial"]: key for _, key in trials(out)}
    lists = [json.loads(line) for line in (out / "lists.jsonl").read_text().splitlines()]
    given: Counter[tuple[str, str]] = Counter()
    for entry in lists:
        chosen = [keys[name] for name in entry["trials"]]
        if entry["list"].endswith("-all"):
            continue
        first = [key for key in chosen if not key["repeat_of"] and key["catch"] == "0"]
        assert len(first) == 12
        assert len({key["stimulus"] for key in first}) == 12
        for truth in ("human", "machine"):
            for agent in {key["agent"] if truth == "machine" else "" for key in first if key["truth"] == truth}:
                of_group = [key["version"] for key in first if key["truth"] == truth and agent in ("", key["agent"])]
                counts = Counter(of_group)
                assert max(counts.values()) - min([counts[name] for name in ("", "case", "length")]) <= 1
        for key in chosen:
            if key["repeat_of"]:
                assert keys[key["repeat_of"]]["version"] == key["version"]
                assert keys[key["repeat_of"]] in first
        given.update((key["version_of"] or key["trial"], key["version"]) for key in first)
    # 8 lists of 12 of 80 answers to each task, in 5 versions: no answer comes twice in one.
    assert max(given.values()) == 1
    by_name = {entry["list"]: entry["trials"] for entry in lists}
    versions = Counter(keys[name]["version"] for name in by_name["image_captioning-all"] if keys[name]["catch"] == "0")
    assert set(versions.values()) == {80}
    assert len(versions) == 5


def test_the_same_seed_gives_the_same_versions(run: Path, out: Path, tmp_path: Path) -> None:
    again = tmp_path / "T"
    draw_trials(run, again, lengths=[3, 6], seed=5, without=WITHOUT.split(","), plant="case")
    assert (again / "trials.jsonl").read_bytes() == (out / "trials.jsonl").read_bytes()
    assert key_path(again).read_bytes() == key_path(out).read_bytes()


def captions(folder: Path, of_people: list[str], of_machine: list[str]) -> Path:
    """A run whose people and whose agent ``alpha`` wrote these captions."""
    (folder / "pictures").mkdir()
    stimuli = []
    records: dict[str, list[Any]] = {"alpha": [], "humans": []}
    for at, both in enumerate(zip(of_machine, of_people, strict=True)):
        PILImage.new("RGB", (8, 8), (at, 0, 0)).save(folder / "pictures" / f"{at}.png")
        stimuli.append(stimulus(f"p{at}", "image_captioning", image=f"pictures/{at}.png"))
        for name, text in zip(("alpha", "humans"), both, strict=True):
            answer: dict[str, Any] = {"text": text, "tokens": None, "score": None, "finish": None, "flags": []}
            whose, kind = ("human:01", PERSON) if name == "humans" else (name, {})
            records[name].append(record(f"p{at}", "image_captioning", whose, answer=answer, **kind))
    about = {"source": "set.jsonl", "root": str(folder), "count": len(stimuli), "sha256": "b" * 64}
    return write_run(folder / "run", stimuli, records, {"alpha": agent_entry("image_captioning")}, set=about)


def test_answers_of_which_nothing_is_left_leave_all_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = captions(tmp_path, ["Maybe.", "A dog.", "A cat runs."], ["A dog!", "I guess...", "Perhaps a cat."])
    out = tmp_path / "T"
    assert compose(run, "--out", out, "--without", "hedging,punctuation", "--seed", 1) == 0
    said = capsys.readouterr().out
    assert (
        "2 answers left out in all versions, because a version would leave nothing of a text: 1 from people and 1"
        in said
    )
    assert "hedging changed 0 of 2 answers from people and 1 of 2 answers from alpha" in said
    texts = sorted(trial["answer"]["text"] for trial, key in trials(out) if key["version"] == "hedging+punctuation")
    assert texts == ["A cat", "A cat runs", "A dog", "A dog"]
    notes = json.loads(about_path(out).read_bytes())
    assert notes["versions"]["left_out"] == [{"task": "image_captioning", "participants": 1, "agents": {"alpha": 1}}]


def test_lengths_are_matched_among_what_was_drawn(tmp_path: Path) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    of_people = [" ".join(words[: 1 + at % 5]) + "." for at in range(20)]
    of_machine = [" ".join(words[: 3 + at % 7]) + "." for at in range(20)]
    made = draw_trials(
        captions(tmp_path, of_people, of_machine), tmp_path / "T", without="length", plant="length", seed=2
    )
    versions = by_version(made.path, "image_captioning")

    def lengths(version: str, truth: str) -> list[int]:
        found = [(trial, key) for trial, key in versions[version].values() if key["truth"] == truth]
        return sorted(len(trial["answer"]["text"].split()) for trial, _ in found)

    drawn = {truth: lengths("", truth) for truth in ("human", "machine")}
    for truth, uncut in drawn.items():
        cut = lengths("length", truth)
        assert all(after <= before for after, before in zip(cut, uncut, strict=True))
    # A length of people's, or the machine's own where that is shorter.
    assert max(lengths("length", "machine")) <= max(drawn["human"])
    assert mean(drawn["machine"]) - mean(drawn["human"]) > 2
    assert abs(mean(lengths("length", "machine")) - mean(lengths("length", "human"))) < 1
    assert lengths("plant:length", "human") == drawn["human"]
    assert max(lengths("plant:length", "machine")) <= max(drawn["human"])
    table = made.to_pandas()
    assert len(as_drawn(table)) == 40
    assert Counter(table["version"]) == {"": 40, "length": 40, "plant:length": 40}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--without", "delay"), "without: delay needs trials that show delays: add --show-delays"),
        (("--plant", "label_order"), "label_order cannot be planted"),
        (("--without", "shape"), "there is no 'shape', but hedging"),
        (("--task", "word", "--without", "path_length"), "path_length is of other tasks: attention"),
        (("--pairs", "--without", "case"), "without does not go with pairs"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert compose(run, "--out", tmp_path / "T", *options) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_the_command_lists_all_transformations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tells"]) == 0
    said = capsys.readouterr().out
    for name in TRANSFORMATIONS:
        assert f"\n{name} " in said


def test_an_answer_is_measured_as_a_trial_has_it() -> None:
    trial = {"asked": "conversation", "speaker": "B", "answer": {"messages": [{"speaker": "B", "text": "Two words"}]}}
    seen = seen_in(trial)
    assert seen == SeenAnswer("conversation", ShownAnswer.model_validate(trial["answer"]), "B")
    assert TRANSFORMATIONS["length"].measure(seen) == 2
