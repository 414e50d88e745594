"""``turinglike trials``, from run folders to a trial set: what judges may see, what the key says, what is told."""

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from PIL import Image as PILImage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from agents.answers import plain
from agents.contract import Draw
from agents.errors import InputError
from agents.stimuli import SHOWN, TASKS, parse_row
from agents.universal.catch import CatchAgent
from judging.trial_sets import blindness
from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from serving.files.output_paths import MODIFIED
from serving.sets.checking import check_rows
from serving.sets.stimulus_set import read_rows
from tests.helpers.run_folders import NOT_MODELLED, agent_entry, record, stimulus, write_run

PERSON: dict[str, Any] = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None}
AGENTS = ("alpha", "beta")


def answer(task: str, at: int, chance: random.Random) -> dict[str, Any]:
    word = chance.choice(["red", "green", "blue", "tall", "small", "old", "new"]) + str(at)
    match task:
        case "color_estimation":
            return {"color": f" {word.title()} ", "css_name": "crimson", "rgb": None, "palette": None}
        case "object_detection":
            return {"labels": ["Cat", word, " sofa", "dog"], "scores": [0.5] * 4, "boxes": None}
        case "image_captioning":
            return {"text": f"A  {word} cat.\n", "tokens": 4, "score": -1.0, "finish": "stop", "flags": []}
        case "word_association":
            return {"word": word.upper(), "candidates": None, "skipped": []}
        case "attention_prediction":
            points = [[chance.random() * 128, chance.random() * 96] for _ in range(3)]
            rest = dict.fromkeys(["window", "stop", "found", "found_at", "forced_first", "selection", "durations_ms"])
            return {"fixations": points, "frame": [128, 96], **rest}
    messages = [
        {**NOT_MODELLED, "turn": turn, "speaker": ("Ann", "Bob")[turn % 2], "agent": "", "text": f"{word} {turn}"}
        for turn in range(7)
    ]
    return {"messages": messages, "ended_early": False}


def runs(folder: Path, number: int = 30) -> Path:
    """A run of two agents and people, and catch trials, over all tasks."""
    pictures = folder / "pictures"
    pictures.mkdir()
    chance = random.Random(0)
    stimuli = []
    records: dict[str, list[Any]] = {name: [] for name in (*AGENTS, "catch", "humans")}
    for task in TASKS:
        for at in range(number):
            name = f"{task}/{at}"
            fields: dict[str, Any] = {"meta": {"half": at % 2}, "benchmark_id": f"b{at}"}
            if task not in ("word_association", "conversation"):
                PILImage.new("RGB", (64, 48), (chance.randrange(256), 90, at)).save(pictures / f"{task}{at}.png")
                fields["image"] = f"pictures/{task}{at}.png"
            stimuli.append(stimulus(name, task, **fields))
            for agent in records:
                whose = {"humans": "human:07"}.get(agent, agent)
                spoken = answer(task, at, chance)
                for message in spoken.get("messages", ()):
                    message["agent"] = whose
                kind = PERSON if agent == "humans" else {"kind": "control"} if agent == "catch" else {}
                records[agent].append(record(name, task, whose, answer=spoken, **kind))
    entries = {name: agent_entry(*TASKS) for name in AGENTS} | {"catch": agent_entry(*TASKS, kind="control")}
    about = {"source": "set.jsonl", "root": str(folder), "count": len(stimuli), "sha256": "b" * 64}
    return write_run(folder / "run", stimuli, records, entries, set=about)


def compose(*arguments: object) -> int:
    return main(["trials", *map(str, arguments)])


def trials(out: Path) -> list[tuple[dict[str, Any], dict[str, str]]]:
    with key_path(out).open(newline="") as file:
        key = list(csv.DictReader(file))
    rows = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [item["trial"] for item in key]
    return list(zip(rows, key, strict=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def out(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trials") / "T"
    assert compose(run, "--out", out, "--lengths", "3,6", "--seed", 5) == 0
    return out


def test_a_trial_set_is_a_stimulus_set_of_half_people(out: Path) -> None:
    assert not check_rows(read_rows(out / "trials.jsonl")).problems
    for task in TASKS:
        chosen = [key for trial, key in trials(out) if trial["asked"] == task and key["catch"] == "0"]
        people = sum(key["truth"] == "human" for key in chosen)
        assert people == len(chosen) / 2
        for agent in AGENTS:
            assert sum(key["agent"] == agent for key in chosen) == people / 2
        assert sum(key["catch"] == "1" for trial, key in trials(out) if trial["asked"] == task) == round(
            len(chosen) / 10
        )


def test_a_judge_sees_what_people_also_say_and_nothing_else(out: Path) -> None:
    plain = out.joinpath("trials.jsonl").read_text()
    for hidden in (*AGENTS, "human:07", "catch", "crimson", "half", "b1", "run", "Ann", "pictures"):
        assert f'"{hidden}"' not in plain
        assert f"{hidden}/" not in plain
    for trial, key in trials(out):
        assert set(trial["answer"]) == set(SHOWN[trial["asked"]])
        match trial["asked"]:
            case "color_estimation":
                assert trial["answer"]["color"] == trial["answer"]["color"].strip().lower()
            case "object_detection":
                assert trial["answer"]["labels"][::2] == ["cat", "sofa"]
                assert len(trial["answer"]["labels"]) == 3
            case "image_captioning":
                assert trial["answer"]["text"].startswith("A ")
                assert trial["answer"]["text"].endswith(" cat.")
            case "attention_prediction":  # from a frame twice as large to the picture's whole pixels
                assert trial["answer"]["frame"] == [64, 48]
                assert all(x == int(x) and 0 <= x <= 64 for x, _ in trial["answer"]["fixations"])
            case "conversation":
                assert [item["speaker"] for item in trial["answer"]["messages"]] == list("ABABAB"[: int(key["length"])])
                assert trial["question"] == f"Is {trial['speaker']} a human or a machine?"


def test_all_files_are_as_old_and_named_by_numbers(out: Path, run: Path) -> None:
    media = list((out / "media").iterdir())
    assert {path.stat().st_mtime for path in [*media, out / "trials.jsonl", out / "lists.jsonl"]} == {MODIFIED}
    assert all(path.stem[0] in "st" and path.stem[1:].isdecimal() for path in media)
    for trial, key in trials(out):  # each answer to a picture shows that picture
        if "image" in trial:
            original = run.parent / "pictures" / (key["stimulus"].replace("/", "") + ".png")
            assert (out / trial["image"]).read_bytes() == original.read_bytes()
            assert trial["shown"] == Path(trial["image"]).stem


def test_the_key_leads_back_to_the_record(out: Path, run: Path) -> None:
    by_stimulus = {
        (row["agent"], row["stimulus"]): row
        for path in (run / "records").iterdir()
        for row in map(json.loads, path.read_text().splitlines())
    }
    for trial, key in trials(out):
        row = by_stimulus[key["record"], key["stimulus"]]
        assert key["truth"] == ("human" if row["kind"] == "human" else "machine")
        columns = json.loads(key["columns"])
        assert columns["half"] in (0, 1)
        if trial["asked"] == "conversation":
            others = [other for other in row["agent"].split("~") if other != key["agent"]] or [key["agent"]]
            partner = others[0] if not others[0].startswith("human:") else "a person"
            letters = sorted("H" if who.startswith("human:") else "M" for who in (key["agent"], others[0]))
            assert (columns["partner"], columns["type"]) == (partner, "-".join(letters))
        if trial["asked"] == "word_association":
            # The rules take digits away; catch trials pass no rules.
            word = "".join(filter(str.isalpha, row["answer"]["word"].lower()))
            assert trial["answer"]["word"] == (row["answer"]["word"].lower() if key["catch"] == "1" else word)


def test_the_same_seed_gives_the_same_set_and_another_another(out: Path, run: Path, tmp_path: Path) -> None:
    for seed in (5, 6):
        assert compose(run, "--out", tmp_path / f"{seed}", "--lengths", "3,6", "--seed", seed) == 0
    assert (tmp_path / "5" / "trials.jsonl").read_bytes() == (out / "trials.jsonl").read_bytes()
    assert (tmp_path / "6" / "trials.jsonl").read_bytes() != (out / "trials.jsonl").read_bytes()


def test_lists_have_the_papers_numbers(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "T"
    asked = "color_estimation,word_association"
    assert compose(run, "--out", out, "--task", asked, "--lists", 4, "--preset", "2022", "--repeats", 0.04) == 0
    truth = {key["trial"]: key for _, key in trials(out)}
    for item in map(json.loads, (out / "lists.jsonl").read_text().splitlines()):
        chosen = [truth[name] for name in item["trials"]]
        assert len({key["trial"] for key in chosen}) == len(chosen)
        first = [key for key in chosen if key["catch"] == "0" and not key["repeat_of"]]
        assert len(first) == {"color_estimation": 25, "word_association": 50}[item["asked"]]
        again = [key for key in chosen if key["repeat_of"]]
        assert len(again) == round(0.04 * len(first))
        assert all(truth[key["repeat_of"]] in chosen for key in again)


def test_what_is_wrong_leaves_nothing(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose(run, "--out", tmp_path / "T", "--agents", "alpha,gamma") == 2
    assert "gamma: the runs hold no answers of theirs, but of alpha, beta" in capsys.readouterr().err
    assert compose(tmp_path, "--out", tmp_path / "T") == 2
    assert compose(run, "--out", tmp_path / "T", "--lists", 3) == 2
    assert not any(tmp_path.iterdir())


def test_a_missing_picture_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs(tmp_path, 3)
    (tmp_path / "pictures" / "image_captioning1.png").unlink()
    assert compose(run, "--out", tmp_path / "T", "--task", "image_captioning") == 2
    assert "image_captioning1.png" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pictures", "run"]


def test_without_a_seed_nobody_can_draw_the_order_again(run: Path, tmp_path: Path) -> None:
    orders = []
    for name in ("A", "B"):
        assert compose(run, "--task", "word", "--out", tmp_path / name) == 0
        orders.append((tmp_path / name / "trials.jsonl").read_bytes())
        seed = json.loads((tmp_path / f"{name}.trials.json").read_bytes())["seed"]
        assert compose(run, "--task", "word", "--seed", seed, "--out", tmp_path / "again", "--force") == 0
        assert (tmp_path / "again" / "trials.jsonl").read_bytes() == orders[-1]
    assert orders[0] != orders[1]


def test_people_are_asked_about_what_their_answers_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = runs(tmp_path)
    lines = [json.loads(line) for line in (source / "stimuli.jsonl").read_text().splitlines()]
    without = [{key: value for key, value in row.items() if key != "benchmark_id"} for row in lines]
    (source / "stimuli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in without))
    for name in ("beta", "catch", "humans"):
        (source / "records" / f"{name}.jsonl").unlink()
    words = {row["cue"].upper(): [{"response": "x", "groundtruth": "human"}] for row in lines if "cue" in row}
    colors = {f"color_estimation{at}.png": [{"response": "red", "groundtruth": "human"}] for at in range(30)}
    others = {f"other{at}.png": rows for at, rows in enumerate(colors.values())}
    for name, content in (("word", words), ("color", colors), ("others", others)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = [str(tmp_path / f"{name}.json") for name in ("word", "color")]
    assert main(["import", *files, "--out", str(tmp_path / "people")]) == 0
    asked = "word_association,color_estimation"
    folders = (source, tmp_path / "people")
    assert compose(*folders, "--task", asked, "--as-written", "--out", tmp_path / "T") == 0
    rows = list(read_trial_key(key_path(tmp_path / "T")).values())
    for task in asked.split(","):
        of_task = [row for row in rows if row["asked"] == task]
        assert len({row["stimulus"] for row in of_task}) * 2 == len(of_task)
    unknown = ["import", str(tmp_path / "others.json"), "--task", "color", "--out", str(tmp_path / "others")]
    assert main(unknown) == 0
    assert compose(source, tmp_path / "others", "--task", "color", "--out", tmp_path / "U") == 2
    assert (
        "30 of 60 answers are about pictures that are in no run, such as people's to 'other" in capsys.readouterr().err
    )
    assert not (tmp_path / "U").exists()


def test_the_same_answers_do_not_count_twice(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "copy")
    assert compose(run, tmp_path / "copy", "--out", tmp_path / "T") == 2
    assert f"answers of alpha stand in {tmp_path / 'copy'} and in an earlier run" in capsys.readouterr().err
    assert compose(run, "--repeats", 0.1, "--out", tmp_path / "T") == 2
    assert "say with per_judge or preset" in capsys.readouterr().err


def test_metadata_that_gives_truth_away_is_told(tmp_path: Path) -> None:
    """A set whose order tells, and one whose answers' lengths tell, beside one in which nothing does."""
    chance = random.Random(1)
    rows = []
    for at in range(200):
        truth = "human" if chance.random() < 0.5 else "machine"
        trial: dict[str, Any] = {
            "id": f"t{at:04}",
            "asked": "word_association",
            "shown": f"s{at // 2:04}",
            "cue": "sun",
            "answer": {"word": chance.choice(["sun", "moon", "light"])},
        }
        key: dict[str, Any] = {"truth": truth, "catch": 0, "repeat_of": ""}
        rows.append((trial, key))
    names = [trial["id"] for trial, _ in rows]
    [fair] = blindness.measure_blindness(tmp_path, rows, 0, [chance.sample(names, 50) for _ in range(20)])
    assert fair["hidden"]["low"] < 0.5 < fair["hidden"]["high"]
    assert fair["hidden"]["p"] > 0.05
    people_first = [trial["id"] for trial, key in sorted(rows, key=lambda row: row[1]["truth"])]
    [listed] = blindness.measure_blindness(tmp_path, rows, 0, [sorted(names), people_first])
    assert listed["hidden"]["low"] > 0.9
    assert listed["hidden"]["p"] == 0.01
    ordered = [
        (dict(trial, id=f"t{at:04}"), key) for at, (trial, key) in enumerate(sorted(rows, key=lambda r: r[1]["truth"]))
    ]
    for at, (trial, _) in enumerate(ordered):
        trial["shown"] = f"s{at // 2:04}"
    [output] = blindness.measure_blindness(tmp_path, ordered, 0)
    assert output["hidden"]["low"] > 0.9
    longer = [
        (dict(trial, answer={"word": "long word" if key["truth"] == "machine" else "sun"}), key) for trial, key in rows
    ]
    [output] = blindness.measure_blindness(tmp_path, longer, 0)
    assert output["shown"]["detectability"] == output["shown"]["high"] == 1
    of_stimuli = scipy.stats.binomtest(100, 100).proportion_ci(0.95, method="exact")  # 1 of 1 would have no width
    assert output["shown"]["low"] == pytest.approx(of_stimuli.low, abs=1e-4)
    assert output["hidden"]["low"] < 0.5 < output["hidden"]["high"]


def test_the_classifier_is_fishers_and_its_p_is_uniform_where_nothing_tells() -> None:
    """As scikit-learn's discriminant; of fair sets whose stimuli are alike in their inputs, 5 % have p below 0.05."""
    draw = np.random.default_rng(2)
    below = 0
    for number in range(200):
        groups = [f"s{stimulus}" for stimulus in np.repeat(np.arange(20), draw.choice([2, 4], 20))]
        clusters = np.unique(groups, return_inverse=True)[1]
        inputs = np.column_stack([draw.normal(size=(20, 2))[clusters], draw.normal(size=(len(groups), 2))])
        is_machine = draw.random(len(groups)) < 0.4
        below += blindness.detected(inputs, is_machine, groups, number)["p"] < 0.05
    assert scipy.stats.binomtest(below, 200, 0.05).pvalue > 0.001
    fold = clusters % 5
    found = blindness._recognized(inputs, is_machine[:, None], fold)[:, 0]
    for held in range(5):
        model = LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(inputs[fold != held], is_machine[fold != held])
        assert ((model.predict(inputs[fold == held]) == is_machine[fold == held]) == found[fold == held]).all()


@pytest.mark.parametrize("whose", ["human", "machine", None])
def test_whose_swapped_scanpaths_are(tmp_path: Path, capsys: pytest.CaptureFixture[str], whose: str | None) -> None:
    """The agent `catch` says whose the path is, from its file; 2025 paper, L499: nobody can tell."""
    ready = runs(tmp_path, 12)
    file = tmp_path / "paths.jsonl"
    file.write_text(json.dumps(record("other", "attention_prediction", **(PERSON if whose == "human" else {}))))
    agent = CatchAgent(CatchAgent.Settings(scanpath="other_image", scanpaths=file), "catch")
    agent.open()
    picture = {"id": "s", "task": "attention_prediction", "image": "pictures/attention_prediction0.png"}
    reply: Any = agent.respond([agent.prepare(parse_row(json.dumps(picture), root=tmp_path))], [Draw(0)])[0]
    path = ready / "records" / "catch.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["task"] == "attention_prediction":
            row |= {"answer": plain(reply.answer), "raw": reply.raw if whose else {"stimulus": "other"}}
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    out = tmp_path / "T"
    assert compose(ready, "--out", out, "--task", "attention", "--catch", 0.5) == 0
    output = capsys.readouterr().out
    swapped = [key for _, key in trials(out) if key["catch"] == "swapped"]
    plain_trials = [key for _, key in trials(out) if key["catch"] == "0"]
    assert len(plain_trials) == 24
    assert sum(key["truth"] == "human" for key in plain_trials) == 12
    assert not any(key["catch"] == "1" for _, key in trials(out))
    if whose is None:  # as records were before
        assert swapped == []
        assert "left out (swapped scanpaths that do not say who looked; generate them again): 12" in output
    else:
        assert [(key["truth"], key["agent"]) for key in swapped] == [(whose, "catch")] * 12
        assert "0 catch trials, 12 swapped" in output


def test_all_that_is_wrong_in_a_key_is_named_by_line_and_column(run: Path, tmp_path: Path) -> None:
    options = ("--task", "word", "--without", "case", "--seed", 1)
    assert compose(run, "--out", tmp_path / "T", *options) == 0
    key = key_path(tmp_path / "T")
    with key.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0] |= {"block": "first", "length": "4.5"}
    rows[1] |= {"delays": "{", "objects": "[]"}
    rows[2] |= {"truth": "robot"}
    with key.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError) as error:
        read_trial_key(key)
    named = {(problem.line, problem.field) for problem in error.value.problems}
    assert named == {(2, "block"), (2, "length"), (3, "delays"), (3, "objects"), (4, "truth")}
