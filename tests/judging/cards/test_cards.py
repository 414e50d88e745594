"""``turinglike test`` from agents to a card, and ``turinglike cards``."""

import contextlib
import csv
import json
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from agents.stimuli import Asked
from judging.cards.card import Card, card_schema, read_card
from judging.cards.making import plan
from judging.cards.page import badge, readme_rows
from judging.cards.pool import chosen, find_pool
from serving.cli import main
from serving.projects import running
from serving.runs.run import Run
from tests.judging.cards.test_calibration import table
from tests.judging.cards.test_pools import PLAIN, manifest
from tests.judging.contamination.test_marks import TYPED

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "examples" / "images"
NAMES = ("astronaut.png", "brick.png", "camera.png", "chelsea.png", "china.jpg", "coffee.png")
COLORS = ("orange", "gray", "gray", "brown", "blue", "brown")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are carried out here: a process of its own for each imports everything anew."""

    def carried_out(words: Sequence[str], folder: Path) -> int:
        with contextlib.chdir(folder):
            return main(words)

    monkeypatch.setattr(running, "_carried_out", carried_out)


def colours_and_words(folder: Path) -> Path:
    """A pool of two tasks, one of them about pictures."""
    pool = manifest(
        folder,
        PLAIN.replace("[[answers]]", "participants = 3\n\n[[answers]]")
        + '[[answers]]\ntask = "color"\nfile = "colours.csv"\nstimuli = "pictures.csv"\n'
        + 'import = { columns = { subject = "who", response = "said" } }\n',
    )
    rows = ["image,who,said"]
    cues = ["cue,subject,response"]
    for number, name in enumerate(NAMES):
        for person in range(3):
            rows.append(f"{name},p{person},{COLORS[(number + (person == 2)) % len(COLORS)]}")
            cues.append(f"cue{number},p{person},word{chr(97 + number)}{chr(97 + person)}")
    (pool / "colours.csv").write_text("\n".join(rows) + "\n")
    (pool / "words.csv").write_text("\n".join(cues) + "\n")
    (pool / "pictures").mkdir()
    for name in NAMES:
        shutil.copy(PICTURES / name, pool / "pictures")
    # The table of answers has the names of the files alone: `trials` finds a picture by them, too.
    rows = [f"pictures/{name},pictures/{name}" for name in NAMES]
    (pool / "pictures.csv").write_text("\n".join(["id,image", *rows, ""]))
    return pool


def test_a_card_of_two_tasks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = colours_and_words(tmp_path / "pool")
    call = ["test", "mmcq", "center", "--people", "pool", "--judges", "cue-length,svm", "--here", "-o", "card"]
    assert main(call) == 0
    said = capfd.readouterr()
    assert said.out.endswith("card: card/index.html\n")
    folder = tmp_path / "card"
    card = read_card((folder / "card.json").read_bytes(), "card.json")
    content = json.loads((folder / "card.json").read_text())
    Draft202012Validator(card_schema()).validate(content)
    assert [agent.agent for agent in card.agents] == ["mmcq"]
    assert card.left_out == [
        "attention_prediction: no participants' answers in mine/1; give a pool that has some with --people",
        "center answers attention, and no pool has participants' answers to it",
    ]
    [result] = card.agents[0].tasks
    assert (result.task, result.pool, result.stimuli) == ("color_estimation", "mine/1", 6)
    assert (result.usage.ok, result.usage.failed, result.usage.attempts, result.usage.tokens) == (6, 0, 6, None)
    [used] = card.pools
    assert (used.answers, used.participants, used.verified) == (18, 3, False)

    # The card says what the page of scores says: the same figures, outcomes and words.
    scores = json.loads((folder / "mmcq" / "scores" / "scores.json").read_text())
    by_judge = {row["judge"]: row for row in scores["scores"] if row["agent"] == "mmcq"}
    conclusions = {row["judge"]: row for row in scores["conclusions"]["color_estimation"]}
    assert {judge.judge for judge in result.judges} == set(conclusions)
    for judge in result.judges:
        row = by_judge[judge.judge]
        assert judge.outcome == conclusions[judge.judge]["outcome"]
        assert judge.why == conclusions[judge.judge]["why"]
        figure = judge.detectability
        assert (figure.value, figure.low, figure.high) == tuple(
            row[f"detectability{end}"] for end in ("", "_low", "_high")
        )

    # Answers side by side are those of the records and of the table.
    records = [json.loads(line) for line in (folder / "answers/records/mmcq.jsonl").read_text().splitlines()]
    said_by_agent = {record["stimulus"]: record["answer"]["color"] for record in records}
    assert len(result.beside) == 6
    for beside in result.beside:
        assert list(beside.agent) == [said_by_agent[f"color/{beside.stimulus}"]]
        number = NAMES.index(Path(beside.stimulus).name)
        assert sorted(beside.participants) == sorted([COLORS[number]] * 2 + [COLORS[(number + 1) % 6]])

    # Nothing is answered or judged again, and the card stays the same.
    before = {path: path.read_bytes() for path in folder.glob("**/records/*.jsonl")}
    text = (folder / "card.json").read_bytes()
    assert main(call) == 0
    assert {path: path.read_bytes() for path in folder.glob("**/records/*.jsonl")} == before
    assert (folder / "card.json").read_bytes() == text
    page = (folder / "index.html").read_text()
    for part in ("Not calibrated:", "No property was taken away.", "mine/1", "not verified", "turinglike generate"):
        assert part in page, part
    assert "<script" not in page
    assert page.count('<img src="data:image/jpeg;base64,') == 6
    project = tomllib.loads((folder / "turinglike.toml").read_text())
    assert project["import"]["columns"] == {"subject": "who", "response": "said"}
    of_agent = tomllib.loads((folder / "mmcq" / "turinglike.toml").read_text())
    assert of_agent["trials"] == {
        "runs": ["../answers"],
        "people": ["../people"],
        "agents": ["mmcq"],
        "task": ["color_estimation"],
        "common": True,
        "seed": 0,
        "out": "trials",
    }

    # Another judge is another card; a folder of something else is nobody's card.
    capfd.readouterr()
    assert main([*call[:-1], "card", "--per-agent", "3"]) == 2
    assert "holds a card that is made of other --per-agent; choose another --out" in capfd.readouterr().err
    assert main([*call[:-1], str(pool)]) == 2
    assert "exists and holds no card" in capfd.readouterr().err

    # A card that was moved goes on: what is done stays done.
    shutil.move(folder, tmp_path / "moved")
    assert main([*call[:-1], "moved"]) == 0
    assert "# done before, from the same files: turinglike trials" in capfd.readouterr().err
    assert (tmp_path / "moved/card.json").read_bytes() == text
    shutil.move(tmp_path / "moved", folder)

    # A part that was lost is made again; answers that have changed are refused before anything is touched.
    shutil.rmtree(folder / "mmcq" / "trials")
    assert main(call) == 0
    assert (folder / "card.json").read_bytes() == text
    answers = (pool / "colours.csv").read_text()
    (pool / "colours.csv").write_text(answers.replace("orange", "red"))
    assert main(call) == 2
    assert "is made of other answers of participants; choose another" in capfd.readouterr().err
    (pool / "colours.csv").write_text(answers)

    # A board has a row for each agent.
    assert main(["cards", "card", "-o", "board.html"]) == 0
    board = (tmp_path / "board.html").read_text()
    assert "mine/1" in board
    assert 'href="card/index.html"' in board
    assert main(["cards", "card", "pool", "-o", "board.html"]) == 2
    assert "already exists" in capfd.readouterr().err
    assert main(["cards", "card", "pool", "-o", "other.html"]) == 2
    assert "pool/card.json: cannot be read" in capfd.readouterr().err
    assert not (tmp_path / "other.html").exists()


def test_tells_are_taken_away_and_the_judge_learns_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of the scores of versions; and detectability is counted here from the verdicts alone."""
    monkeypatch.chdir(tmp_path)
    pool = manifest(
        tmp_path / "pool",
        PLAIN.replace('task = "word"\nfile = "words.csv"', 'task = "caption"\nfile = "said.csv"\nstimuli = "pictures"'),
    )
    (pool / "pictures").mkdir()
    rows = ["image,subject,response"]
    for number, name in enumerate(NAMES):
        shutil.copy(PICTURES / name, pool / "pictures")
        rows += [f"{name},p{person},The Picture {'is lit' * (number % 3)} of me!" for person in range(2)]
    (pool / "said.csv").write_text("\n".join([*rows, ""]))
    call = ["test", "null", "--people", "pool", "--task", "caption", "--here", "-o", "card"]
    assert main([*call, "--judges", "svm"]) == 0
    folder = tmp_path / "card" / "null" / "tells"
    asked = tomllib.loads((folder / "turinglike.toml").read_text())
    assert asked["trials"]["without"] == ["hedging", "inflection", "punctuation", "case", "length"]
    assert asked["judge"]["judges"] == ["svm"]  # cues do not judge versions

    card = read_card((tmp_path / "card" / "card.json").read_bytes(), "card.json")
    Draft202012Validator(card_schema()).validate(json.loads(card.as_json()))
    [result] = card.agents[0].tasks
    assert result.no_tells == ""
    assert {(tell.tell, tell.taken) for tell in result.tells} == {
        (name, taken) for name in asked["trials"]["without"] for taken in ("alone", "last")
    }
    scores = json.loads((folder / "scores" / "scores.json").read_text())
    by_tell = {(row["tell"], row["taken"]): row for row in scores["tells"]}
    with (folder / "scores" / "verdicts.csv").open(newline="") as file:
        verdicts = list(csv.DictReader(file))

    def detectability(version: str) -> float:
        of_version = [row for row in verdicts if row["version"] == version]
        sides = [[row for row in of_version if row["truth"] == truth] for truth in ("human", "machine")]
        assert all(len(side) == len(NAMES) for side in sides)
        return sum(sum(row["verdict"] == row["truth"] for row in side) / len(side) for side in sides) / 2

    for tell in result.tells:
        row = by_tell[tell.tell, tell.taken]
        assert (tell.change.value, tell.change.low, tell.p) == (row["change"], row["change_low"], row["holm"])
        if tell.taken == "alone":
            assert tell.before == pytest.approx(detectability(""))
            assert tell.after == pytest.approx(detectability(tell.tell))
    [left] = result.remaining
    assert left.detectability.value == pytest.approx(detectability("+".join(asked["trials"]["without"])))
    page = (tmp_path / "card" / "index.html").read_text()
    assert "null/tells/scores/index.html" in page
    assert "No property was taken away" not in page

    # A language model or a single cue as the only judge does not learn: nothing is taken away, and the card says why.
    assert main([*call[:-1], "other", "--judges", "cue-length"]) == 0
    other = read_card((tmp_path / "other" / "card.json").read_bytes(), "card.json")
    assert other.agents[0].tasks[0].no_tells.startswith("No property was taken away: no judge")
    assert not (tmp_path / "other" / "null" / "tells").exists()


def test_answers_that_participants_did_not_write_are_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    part = 'task = "caption"\nfile = "said.csv"\nstimuli = "pictures"\ntraces = "export"'
    pool = manifest(tmp_path / "pool", PLAIN.replace('task = "word"\nfile = "words.csv"', part))
    (pool / "pictures").mkdir()
    rows = ["image,subject,response"]
    for name in NAMES:
        shutil.copy(PICTURES / name, pool / "pictures")
        rows += [f"{name},p{person:02},A picture of a thing in the light {person}" for person in range(20)]
    (pool / "said.csv").write_text("\n".join([*rows, ""]))
    call = ["test", "null", "--people", "pool", "--task", "caption", "--judges", "svm", "--here", "-o", "card"]
    assert main(call) == 2
    assert "traces: is no run folder" in capfd.readouterr().err

    # The same answers as an export of a study has them: five participants always pasted, in another window.
    assert main(["import", "pool/said.csv", "--task", "caption", "--out", "pool/export"]) == 0
    run = Run(pool / "export")
    records = list(run.latest("humans"))
    for record in records:
        is_pasted = record["agent"] <= "human:p04"
        pasted = {"pasted_characters": 36, "keys": 0, "characters_per_s": None, "hidden_ms": 9000}
        record["raw"] = {"traces": {**TYPED, **(pasted if is_pasted else {})}}
    run.write_records("humans", records)
    assert main(call) == 0
    card = read_card(Path("card/card.json").read_bytes(), "card.json")
    [used] = card.pools
    assert used.contamination is not None
    assert (used.contamination.answers, used.contamination.persons, used.contamination.why) == (120, 20, "")
    rate = used.contamination.rate
    assert rate.value == pytest.approx(5 / 20, abs=0.02)
    assert rate.low is not None
    assert rate.high is not None
    assert 0 < rate.low < rate.high < 0.7
    scores = json.loads(Path("card/null/scores/scores.json").read_text())
    [row] = [row for row in scores["contamination"] if row["judge"] == "svm" and row["agent"] == "null"]
    [judge] = card.agents[0].tasks[0].judges
    assert row["judged_without_traces"] == 0
    if row["why"]:
        assert judge.corrected is None
    else:
        assert judge.corrected is not None
        assert judge.corrected.value == row["detectability_corrected"]
    assert "did not write themselves is 0.2" in Path("card/index.html").read_text()


def test_all_that_is_wrong_is_told_before_anything_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for call, message in (
        (["test"], "name an agent, and with --out the folder of its card"),
        (["test", "nul", "-o", "card"], "there is no agent 'nul'"),
        (["test", "minilm", "--judges", "mmcq", "-o", "card"], "mmcq"),
        (["test", "mmcq", "-o", "card"], "mmcq answers color, and no pool has participants' answers to it"),
        (["test", "minilm", "--set", "minilm.colors=3", "-o", "card"], "colors"),
        (["test", "minilm", "--people", "absent", "-o", "card"], "is no pool in the box"),
    ):
        assert main(call) == 2
        assert message in capfd.readouterr().err, message
    assert list(tmp_path.iterdir()) == []
    assert main(["test", "--pools"]) == 0
    assert "words-1910, version 1: G. H. Kent" in capfd.readouterr().out


def test_a_card_that_was_killed_at_its_first_file_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    colours_and_words(tmp_path / "pool")
    call = ["test", "mmcq", "--people", "pool", "--here", "-o", "card"]
    assert main(call) == 0
    for path in (tmp_path / "card").iterdir():  # as it was after the first file, with one that is half written
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "card.begun.json":
            path.unlink()
    (tmp_path / "card" / ".stimuli.jsonl.0123456789abcdef").write_text("half")
    assert main(call) == 0
    assert (tmp_path / "card" / "index.html").is_file()


def test_scores_of_an_earlier_call_are_not_told_of_an_agent_that_cannot_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    colours_and_words(tmp_path / "pool")
    call = ["test", "mmcq", "--people", "pool", "--here", "-o", "card"]
    assert main(call) == 0
    (tmp_path / "card" / "mmcq" / "trials.key.csv").unlink()  # without which no trained judge can go on
    assert main(call) == 2
    card = read_card((tmp_path / "card" / "card.json").read_bytes(), "card.json")
    [result] = card.agents[0].tasks
    assert (list(result.judges), result.sentence) == ([], "No judge tested mmcq.")
    assert card.left_out[-1].startswith("mmcq could not be judged")


def test_an_agent_converses_with_itself(tmp_path: Path) -> None:
    from agents.catalogue.selection import resolve

    pool = find_pool(str(manifest(tmp_path, PLAIN.replace("word", "conversation"))))
    (tmp_path / "conversations.csv").write_text("")
    found = chosen([pool], ["conversation", "word_association"])
    tasks: list[Asked] = ["conversation", "word_association"]
    for typed, names, asked in (
        (["eliza"], {"eliza": {"conversation": "eliza~eliza"}}, ["eliza~eliza"]),
        (
            ["eliza", "null~eliza"],
            {"null": {"conversation": "null~eliza"}, "eliza": {"conversation": "null~eliza"}},
            ["null~eliza"],
        ),
    ):
        tested, to_ask, left_out = plan(typed, resolve(typed, (), None), found, tasks, [pool])
        assert (tested, to_ask) == (names, asked)
        assert all("word_association" in sentence for sentence in left_out)


def made(**changed: Any) -> Card:
    judge = {
        "judge": "svm",
        "kind": "classifier",
        "outcome": "passes",
        "why": "",
        "more": "",
        "detectability": {"value": 0.5, "low": 0.46, "high": 0.54},
        "corrected": None,
        "p_human": 0.5,
        "p_machine": 0.5,
        "of_people": 300,
        "of_agent": 299,
        "least_stimuli": None,
        "above_cue": {"value": None, "low": None, "high": None},
        "missing": 0,
    }
    usage: dict[str, Any] = dict.fromkeys(("ok", "rejected", "failed", "unanswered", "attempts", "refusals"), 1)
    usage |= {"seconds": 1.0, "tokens": None, "cost": None, "failures": []}
    result = {
        "task": "word_association",
        "pool": "mine/1",
        "stimuli": 3,
        "outcome": "passes",
        "sentence": "",
        "judges": [judge],
        "cues": 3,
        "strongest_cues": [],
        "best_cue": None,
        "tells": [],
        "remaining": [],
        "no_tells": "",
        "leak": None,
        "usage": usage,
        "beside": [],
    }
    agent = {"agent": "a|<b>", "provenance": {}, "tasks": [result]}
    content = {"turinglike": "0", "created": "now", "bounds": 0.05, "agents": [agent], "pools": []}
    return Card.model_validate(content | changed)


def test_badge_and_row_of_a_name_with_signs() -> None:
    card = made()
    drawn = badge(card.agents[0])
    assert "word: not told by svm" in drawn
    assert "a|&lt;b&gt;" in drawn
    assert "| a\\|<b> | not told by svm: 0.50 (0.46 to 0.54), 299 answers |" in readme_rows(card)


def test_what_is_no_card_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "card.json"
    for text, message in (("[", "is not JSON"), ("{}", "agents: is missing")):
        file.write_text(text)
        assert main(["cards", str(file), "-o", str(tmp_path / "board.html")]) == 2
        assert message in capfd.readouterr().err
    content = made().model_dump(by_alias=True) | {"schema": "turinglike.card/2"}
    file.write_bytes(orjson.dumps(content))
    assert main(["cards", str(file), "-o", str(tmp_path / "board.html")]) == 2
    assert "schema: " in capfd.readouterr().err


def test_a_page_with_calibration_and_a_board_of_two_pools(tmp_path: Path) -> None:
    from judging.cards.calibration import calibrate
    from judging.cards.page import board_page, card_page

    card = made(calibration=[row.model_dump() for row in calibrate(table(0.6, 0.7, 20, 4, 1), "mine/1")])
    page = card_page(card, {})
    assert "svm says what a person says in" in page
    assert "Not calibrated" not in page
    other = made()
    result = other.agents[0].tasks[0].model_copy(update={"pool": "other/1"})
    agent = other.agents[0].model_copy(update={"tasks": [result]})
    board = board_page([("a/index.html", card), ("b/index.html", other.model_copy(update={"agents": [agent]}))])
    assert board.count("Word association") >= 2
    assert "other/1" in board


def test_judges_are_calibrated_on_the_verdicts_of_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool with trials and what people said of them; the same figures are counted here from the files alone."""
    monkeypatch.chdir(tmp_path)
    pool = colours_and_words(tmp_path / "pool")
    assert main(["generate", "pool/pictures.csv", "--task", "color", "--agents", "mmcq", "--here", "-o", "run"]) == 0
    columns = "subject=who,response=said"
    assert main(["import", "pool/colours.csv", "--task", "color", "--columns", columns, "--out", "run"]) == 0
    assert main(["trials", "run", "--every", "--seed", "4", "--out", "pool/trials"]) == 0
    trials = [json.loads(line)["id"] for line in (pool / "trials" / "trials.jsonl").read_text().splitlines()]
    rows = ["trial,participant,verdict"]
    said = {}
    for judge in range(4):
        for number, trial in enumerate(trials):
            said[trial, judge] = "human" if (number * (judge + 2)) % 3 else "machine"
            rows.append(f"{trial},judge{judge},{said[trial, judge]}")
    (tmp_path / "verdicts.csv").write_text("\n".join(rows) + "\n")
    assert main(["import", "verdicts.csv", "--task", "judgement", "--out", "pool/judged"]) == 0
    with (pool / "pool.toml").open("a") as file:
        file.write('\n[[verdicts]]\ntrials = "trials"\nverdicts = "judged"\n')
    assert main(["test", "mmcq", "--people", "pool", "--here", "-o", "card"]) == 0
    card = read_card((tmp_path / "card" / "card.json").read_bytes(), "card.json")
    [calibration] = card.calibration
    assert (calibration.task, calibration.judge, calibration.people) == ("color_estimation", "svm", 4)
    records = (tmp_path / "card/calibration/1/records/svm.jsonl").read_text().splitlines()
    svm = {record["stimulus"]: record["answer"]["verdict"] for record in map(json.loads, records)}
    agree = [verdict == svm[trial] for (trial, _), verdict in said.items() if trial in svm]
    assert calibration.trials == len(svm) == len(trials)
    assert calibration.agreement.value == pytest.approx(sum(agree) / len(agree))
    page = (tmp_path / "card" / "index.html").read_text()
    assert "What svm is worth: svm says what a person says in" in page
    assert "svm was trained anew on those answers" in page


def test_all_that_is_wrong_with_a_pools_files_is_told_before_a_model_answers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = colours_and_words(tmp_path / "pool")
    (pool / "pictures" / "coffee.png").unlink()
    text = (pool / "pool.toml").read_text()
    (pool / "pool.toml").write_text(text.replace('subject = "who"', 'subject = "eleve"'))
    assert main(["test", "mmcq", "--people", "pool", "--here", "-o", "card"]) == 2
    said = capfd.readouterr().err
    assert "pictures.csv:7: image: pictures/coffee.png: no such file" in said
    assert "eleve" in said
    assert not (tmp_path / "card").exists()
    (pool / "pool.toml").write_text(text + '\n[[verdicts]]\ntrials = "trials"\nverdicts = "judged"\n')
    assert main(["test", "mmcq", "--people", "pool", "--here", "-o", "card"]) == 2
    said = capfd.readouterr().err
    for name in ("trials/trials.jsonl", "trials.key.csv", "judged/run.json"):
        assert f"pool/{name}: verdicts: there is no such file" in said


def test_a_private_pool_makes_a_private_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pool = colours_and_words(tmp_path / "pool")
    (pool / "colours.csv").chmod(0o600)
    assert main(["test", "mmcq", "--people", "pool", "--here", "-o", "card"]) == 0
    assert (tmp_path / "card").stat().st_mode & 0o777 == 0o700
