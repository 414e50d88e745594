"""The report's data: every record as it is, an index that says the same, and nothing of it that could become markup."""

import base64
import hashlib
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.answers import BY_TASK
from agents.errors import InputError
from serving.viewer import data as viewer_data
from serving.viewer import report
from serving.viewer.report import write_report
from tests.helpers.made_runs import ANSWERS, COLOR, PATH, RUN, Folder

EVIL = '</script><script>alert(1)</script><!--"\' onload=alert(2) x="<img src=http://evil.example/x>\u2028'


class Report:
    """A report as its page reads it: ``index``, and ``shown`` [stimulus -> (row, lines of its records)]."""

    def __init__(self, pieces: dict[str, Any], path: Path) -> None:
        self.path = path
        self.pieces = pieces
        self.index: dict[str, Any] = pieces["index"]
        self.shown = [stimulus for number in range(len(self.index["chunks"]) - 1) for stimulus in pieces[str(number)]]

    def records(self) -> list[dict[str, Any]]:
        """Every record, decoded from the columns of the index."""
        index = self.index
        found = []
        columns = index["records"]
        first = index["stimuli"]["first"]
        for number, task in enumerate(index["stimuli"]["task"]):
            for at in range(first[number], first[number + 1]):
                found.append(
                    {
                        "task": index["tasks"][task],
                        "id": index["stimuli"]["id"][number],
                        "agent": index["agents"][columns["agent"][at]],
                        "sample": columns["sample"][at],
                        "status": ["ok", "rejected", "failed"][columns["status"][at]],
                        "flags": index["flags"][columns["flags"][at]],
                        "text": index["texts"][columns["text"][at]],
                    }
                )
        return found

    def counts(self, agent: str) -> list[Any]:
        """[task, kind, participants, ok, rejected, failed, expected, attempts]"""
        [found] = [row[1:] for row in self.index["counts"] if row[0] == agent]
        return list(found)


def read(*folders: Path, out: Path | None = None) -> Report:
    """The report of run folders, read back from its files."""
    path = write_report(folders, out)
    pieces = {}
    for file in (path.parent / "data").iterdir():
        found = re.fullmatch(r'Turinglike\.take\("([a-z0-9]+)",(.*)\);\n', file.read_text(), re.DOTALL)
        assert found is not None
        pieces[found[1]] = json.loads(found[2])
    return Report(pieces, path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def all_tasks(folder: Folder) -> list[dict[str, Any]]:
    picture = folder.picture("harbour.png")
    rows: list[dict[str, Any]] = []
    for task in BY_TASK:
        fields: dict[str, Any] = {"image": picture, "meta": {"list": "b", "number": len(rows)}}
        if task == "word_association":
            fields = {"cue": "time"}
        if task == "conversation":
            fields = {"topic": "boats"}
        rows.append(folder.ask(task, f"{task}/1", **fields))
        folder.agent(f"agent-{task[:4]}", task)
    return rows


def test_every_record_is_there_as_it_is_and_the_index_says_the_same(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer_data, "CHUNK", 600)  # several chunks
    rows = all_tasks(folder)
    verdict = {"filter": "words", "rejected": True, "found": "four"}
    attempt = {"attempt": 0, "turn": None, "seed": 1, "answer": None, "raw": None, "verdicts": [verdict]}
    for row in rows:
        agent = f"agent-{row['task'][:4]}"
        folder.record(agent, row, ANSWERS[row["task"]])
        folder.record(agent, row, ANSWERS[row["task"]], sample=1, status="rejected", attempts=[attempt])
        folder.record(agent, row, status="failed", sample=2, error={"code": "timeout", "message": "too slow"})
        folder.record("human:07", row, ANSWERS[row["task"]], kind="human")
    found = read(folder.write())
    written = sorted(json.dumps(one, sort_keys=True) for some in folder.records.values() for one in some)
    lines = [line for _, some, _ in found.shown for line in some]
    assert sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines) == written
    assert [json.loads(row) for row, *_ in found.shown] == folder.stimuli
    assert len(found.index["chunks"]) > 4
    for line, told in zip(lines, found.records(), strict=True):
        record = json.loads(line)
        assert (record["task"], record["stimulus"]) == (told["task"], told["id"])
        assert {name: record[name] for name in ("agent", "sample", "status")} == {
            name: told[name] for name in ("agent", "sample", "status")
        }
        caption = record["task"] == "image_captioning" and record["status"] != "failed"
        flags = ["cut"] if caption else []
        if record["sample"] == 1:
            flags.append("words rejected")
        assert told["flags"] == flags
    said = {(one["task"], one["status"]): one["text"] for one in found.records()}
    assert said["color_estimation", "ok"] == "red"
    assert said["object_detection", "ok"] == "zebra, dining table"
    assert said["attention_prediction", "ok"] == "3 fixations"
    assert said["conversation", "ok"] == "good morning / is it?"
    assert said["judgement", "ok"] == "machine – nobody says this"
    assert said["word_association", "failed"] == "timeout: too slow"
    meta = {name: [None if at < 0 else values[at] for at in codes] for name, values, codes in found.index["meta"]}
    assert meta["list"] == ["b" if "image" in row else None for row in rows]
    assert found.index["people"] == ["human:07"]


def test_people_and_published_answers_find_their_stimulus(folder: Folder) -> None:
    row = folder.ask("color_estimation", "a", image=folder.picture("a.png"), benchmark_id="1017.jpg")
    folder.agent("first", "color_estimation")
    folder.record("first", row, COLOR)
    folder.record("human:05", {**row, "id": "1017.jpg"}, COLOR, kind="human")
    folder.record("published:git", {**row, "id": "1017.jpg"}, COLOR, kind="published")
    found = read(folder.write())
    assert [(one["id"], one["agent"]) for one in found.records()] == [
        ("a", "first"),
        ("a", "published:git"),
        ("a", "human:05"),
    ]
    assert found.counts("people")[:3] == ["color_estimation", "human", 1]


def test_last_line_of_a_key_counts_and_gaps_are_counted(folder: Folder) -> None:
    rows = [folder.ask("color_estimation", f"{i}", image=folder.picture(f"{i}.png")) for i in range(4)]
    folder.agent("mmcq", "color_estimation", samples=2)
    folder.record("mmcq", rows[0], status="failed", error={"code": "timeout", "message": "too slow"})
    folder.record("mmcq", rows[1], COLOR)
    folder.record("mmcq", rows[0], COLOR)
    found = read(folder.write())
    assert found.counts("mmcq") == ["color_estimation", "machine", 0, 2, 0, 0, 8, 0]
    assert found.index["failures"] == []
    assert len(found.shown) == 4


def test_two_runs_share_stimuli_and_people_but_not_agents(tmp_path: Path) -> None:
    paths = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        folder = Folder(tmp_path / name)
        row = folder.ask("color_estimation", "a", image=folder.picture("a.png"))
        folder.agent("mmcq", "color_estimation")
        folder.record("mmcq", row, COLOR)
        folder.record("human:1", folder.ask("color_estimation", name), COLOR, kind="human")
        paths.append(folder.write().rename(tmp_path / f"run-{name}"))
    found = read(*paths)
    assert [(one["id"], one["agent"]) for one in found.records()] == [
        ("a", "mmcq"),
        ("a", "mmcq (run run-second)"),
        ("first", "human:1"),
        ("second", "human:1"),
    ]
    assert found.path == tmp_path / "run-first" / "report" / "index.html"
    assert found.index["title"] == "2 runs: run-first, run-second"
    assert len(json.loads(found.index["provenance"])) == 2


def test_pictures_missing_changed_moved_or_no_files(folder: Folder) -> None:
    names = {"kept": folder.picture("kept.png"), "gone": folder.picture("gone.png"), "folder": ".", "text": "text.jpg"}
    (folder.set / "text.jpg").write_text("no picture")
    cut = folder.set / folder.picture("cut.png")
    cut.write_bytes(cut.read_bytes()[:20])
    folder.agent("mmcq", "color_estimation")
    for name, image in {**names, "cut": cut.name}.items():
        folder.record("mmcq", folder.ask("color_estimation", name, image=image), COLOR, stimulus_sha256="0" * 64)
    (folder.set / "gone.png").unlink()
    found = read(folder.write())
    troubles = [trouble for _, _, _, trouble, _ in found.index["pictures"]]
    assert troubles[0] is None
    assert "no such file" in troubles[1]
    assert all(troubles[1:])
    assert [changed for *_, changed in found.index["pictures"]] == [True, False, False, False, False]
    [shown] = (found.path.parent / "pictures").iterdir()
    with PILImage.open(shown) as opened:
        assert (shown.name, opened.format, opened.size) == ("0.jpg", "JPEG", (40, 30))
    folder.set.rename(folder.set.with_name("elsewhere"))
    found = read(folder.path)
    assert f"the folder {folder.set}, where they were" in found.index["notices"][0]
    assert len(found.records()) == 5


def test_only_a_report_of_ours_is_replaced(folder: Folder, tmp_path: Path) -> None:
    folder.agent("mmcq", "color_estimation")
    run = folder.write()
    for name in ("run.json", "stimuli.jsonl", "stimuli.index", "lock", "import.json", "records/x.html", "turns/x"):
        for single in (True, False):
            with pytest.raises(InputError, match="keeps its own files"):
                write_report([run], run / name, single_file=single)
    assert json.loads((run / "run.json").read_text())["run"] == RUN
    with pytest.raises(InputError, match="is none that this command has made"):
        write_report([run], folder.set if folder.picture("a.png") else None)
    thesis = tmp_path / "thesis.html"
    thesis.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="is not a report"):
        write_report([run], thesis, single_file=True)
    assert thesis.read_text() == "<html>mine</html>"
    with pytest.raises(InputError, match="not a plain file"):
        write_report([run], "/dev/null", single_file=True)
    for _ in range(2):
        assert write_report([run], tmp_path / "page").read_bytes()[:15] == b"<!DOCTYPE html>"
        assert write_report([run], tmp_path / "new" / "page.html", single_file=True).is_file()
    assert write_report([run], single_file=True) == run / "report.html"


def test_an_empty_run_what_is_no_run_and_imports_alone(folder: Folder, tmp_path: Path) -> None:
    folder.agent("mmcq", "color_estimation")
    found = read(folder.write())
    assert (found.records(), found.shown, found.index["figures"]) == ([], [], [])
    with pytest.raises(InputError):
        write_report([tmp_path / "nowhere"])
    folder.record("human:01", {"id": "0001.jpg", "task": "image_captioning"}, ANSWERS["image_captioning"], kind="human")
    [told] = read(folder.write()).records()
    assert (told["id"], told["text"]) == ("0001.jpg", "a quiet harbour")


def test_damaged_lines_are_said(folder: Folder) -> None:
    folder.agent("x", "color_estimation")
    folder.record("x", folder.ask("color_estimation", "a", image=folder.picture("a.png")), COLOR)
    path = folder.write()
    file = path / "records" / "x.jsonl"
    file.write_text('{"nonsense": 1}\n' + file.read_text() + '{"torn": ')
    found = read(path)
    assert "1 line could not be read as records" in found.index["notices"][0]
    assert len(found.records()) == 1


def test_provenance_says_what_made_the_answers(folder: Folder) -> None:
    folder.ask("color_estimation", "a", image=folder.picture("a.png"))
    folder.agent("mmcq", "color_estimation", settings={"quality": 4}, versions={"numpy": "9.9"})
    folder.agent(
        "other", "image_captioning", provenance={"random_weights": True}, checkpoint="some/model", revision="abc"
    )
    folder.agent("trick", "color_estimation", kind="control")
    members = {"hf-a": {"checkpoint": "./models/a"}, "hf-b": {"checkpoint": "x/b", "revision": "ef"}}
    folder.agent("hf-a~hf-b", "conversation", members=members)
    told = read(folder.write()).index["provenance"]
    for words in (
        RUN,
        "e" * 64,
        "d" * 64,
        "a variant of the papers' agent",
        "numpy 9.9",
        '"quality":4',
        "RANDOM WEIGHTS",
        "some/model",
        "other is not in this catalogue",
        "control: odd",
        "a model by its name",
        "./models/a; x/b at ef",
    ):
        assert words in told, words
    assert told.count("RANDOM WEIGHTS") == 1


def _evil(folder: Folder) -> Path:
    row = folder.ask("image_captioning", EVIL, image=folder.picture("a.png"), meta={EVIL: EVIL, "__proto__": {"x": 1}})
    folder.agent("evil", "image_captioning", settings={EVIL: EVIL, "__proto__": {}}, checkpoint=EVIL)
    folder.record("evil", row, {**ANSWERS["image_captioning"], "text": EVIL, "flags": [EVIL]}, raw={EVIL: EVIL})
    folder.ask("image_captioning", "x", image=f"{EVIL}.png")
    return folder.write()


def test_one_file_holds_what_the_folder_does_and_runs_nothing_but_ours(folder: Folder) -> None:
    run = _evil(folder)
    whole = write_report([run], single_file=True).read_text()
    blocks = re.findall(r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>', whole, re.DOTALL)
    pieces = {name: json.loads(text) for name, text in blocks}
    found = read(run)
    picture = pieces.pop("picture-0")
    with PILImage.open(BytesIO(base64.b64decode(picture.removeprefix("data:image/jpeg;base64,")))) as image:
        assert image.size == (40, 30)
    for both in (pieces, found.pieces):
        both["index"].pop("made")
    assert pieces == found.pieces
    scripts = re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)
    assert len(re.findall(r"<script", whole)) == len(scripts) + len(blocks)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', whole)
    assert policy is not None
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts]
    assert policy[1] == (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "<img" not in whole
    assert "static/" not in whole


def test_pictures_that_one_file_cannot_hold_are_said_to_be_missing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MOST_PICTURES", 700)
    for name in ("a", "b"):
        folder.ask("color_estimation", name, image=folder.picture(f"{name}.png"))
    whole = write_report([folder.write()], single_file=True).read_text()
    assert ('id="data-picture-0"' in whole, 'id="data-picture-1"' in whole) == (True, False)
    assert "one file cannot hold all pictures" in whole


def test_data_as_scripts_have_no_keys_of_other_peoples(folder: Folder) -> None:
    """A literal with the key __proto__ would set what it inherits from: such objects stay text."""

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    found = read(_evil(folder))
    used = set().union(*map(keys, found.pieces.values()))
    assert all(re.fullmatch(r"[a-z_]+", key) for key in used)
    assert "__proto__" not in used


# alarms


def _answered(folder: Folder, task: str, said: dict[str, list[dict[str, Any]]], **fields: Any) -> str:
    """The alarms of a run in which the agents of ``said`` gave these answers, to one picture each."""
    for agent, answers in said.items():
        folder.agent(agent, task)
        for index, answer in enumerate(answers):
            row = {"id": f"s{index}", "task": task, "image": folder.picture(f"{index}.png", (index, 0, 0))}
            if row not in folder.stimuli:
                folder.stimuli.append(row)
            folder.record(agent, row, answer, **{"stimulus_sha256": f"{index:064x}", **fields})
    return "; ".join(read(folder.write()).index["notices"]) or "none"


def _colors(words: str) -> list[dict[str, Any]]:
    return [{**COLOR, "color": word} for word in words.split()]


EIGHT = "red blue green red brown black white pink"


def _paths(*shifts: int) -> list[dict[str, Any]]:
    return [{**PATH, "fixations": [[20, 15], [shift, 5], [3, 28]]} for shift in shifts]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"a": _colors(EIGHT), "b": _colors(EIGHT)}, "a and b gave the same answer to 8 of the 8 stimuli"),
        ({"a": _colors(EIGHT), "b": _colors(EIGHT.replace("brown", "gray"))}, "none"),
        ({"a": _colors("gray " * 7 + "red")}, "a gave one answer to 7 of 8 stimuli (color_estimation): gray"),
        ({"a": _colors("gray " * 7)}, "none"),
        (
            {"g": _paths(1, 2, 3, 4, 5, 6, 7, 1)},
            "g looked along the same path at 2 of 8 different pictures: 0.png, 7.png",
        ),
        ({"g": _paths(1, 2, 3, 4, 5, 6, 7, 8)}, "none"),
    ],
)
def test_alarms(folder: Folder, said: dict[str, list[dict[str, Any]]], told: str) -> None:
    task = "attention_prediction" if "g" in said else "color_estimation"
    assert _answered(folder, task, said).startswith(told)


def test_words_stand_as_written_and_by_the_papers_rules(folder: Folder) -> None:
    """The page has both; statistics compare words after the rules, so that "Cats" and "cat" are one."""
    row = folder.ask("word_association", "w", cue="animal")
    for at, word in enumerate(("Cats", "the", "cat")):
        answer = {**ANSWERS["word_association"], "word": word}
        folder.record(f"human:{at}", row, answer, kind="human")
    found = read(folder.write())
    [(_, lines, by_rules)] = found.shown
    assert [json.loads(line)["answer"]["word"] for line in lines] == ["Cats", "the", "cat"]
    assert by_rules == [{"word": "cat", "rule": None}, {"word": None, "rule": "stop_word"}, None]
    assert found.index["texts"] == ["Cats → cat", "the (left out: stop_word)", "cat"]
    [agreement] = [figure for figure in found.index["figures"] if figure["title"] == "Agreement"]
    assert agreement["values"][0][0][0] == 1
