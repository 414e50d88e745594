"""Export: every format read back by another program, and everything that must be refused."""

import csv
import json
from pathlib import Path
from typing import Any
from unicodedata import category

import orjson
import pandas
import pyarrow.parquet as pq
import pytest
from PIL import Image as PILImage

from agents.errors import InputError
from agents.stimuli import TASKS
from serving.exchange.exporting.command import FORMATS, export_run
from serving.exchange.importing.command import import_files
from serving.runs.records import problems
from serving.runs.run import Run
from tests.helpers.run_folders import ANSWERS, agent_entry, attempt, failed, record, stimulus, write_run

COLOR = "color_estimation"
OBJECTS = "object_detection"
GAZE = "attention_prediction"
CAPTION = "image_captioning"
WORD = "word_association"
NASTY = 'a "quoted", text;\r\nwith\rlines\n=1+1\t\x00\x1b[2J\x85\u202e 🙂 '


def _mixed(tmp_path: Path) -> Path:
    """All tasks, a control, people's answers, two samples of one agent, and each status."""
    stimuli = [
        stimulus("c1", COLOR, benchmark_id="1017.jpg", source="coco-val", meta={"pool": "x", "n": 1, "f": 1, "odd": 1}),
        stimulus("c2", COLOR, meta={"pool": None, "n": 2, "f": 0.5, "odd": "one", "yes": True}),
        stimulus("o1", OBJECTS, present=["cat"]),
        stimulus("g1", GAZE, pixels_per_degree=30),
        stimulus("t1", CAPTION, domain="out"),
        stimulus("w1", WORD, frequency=0.25),
        stimulus("d1", "conversation", topic="books"),
    ]
    agents = {
        "mmcq": agent_entry(COLOR, samples=2),
        "all": agent_entry(*TASKS),
        "catch": agent_entry(COLOR, kind="control"),
    }
    every = [record(row["id"], row["task"], "all") for row in stimuli if row["id"] not in ("c2", "t1")]
    every += [
        record("t1", CAPTION, "all", answer={**ANSWERS[CAPTION], "text": NASTY}, raw=NASTY, attempts=[attempt("no")])
    ]
    mmcq = [record(name, sample=sample, raw={"n": sample}) for sample in (0, 1) for name in ("c1", "c2")]
    human: dict[str, Any] = {
        "kind": "human",
        "seed": None,
        "timing": None,
        "worker": None,
        "created": None,
        "stimulus_sha256": None,
    }
    empty = {"color": "none", "css_name": None, "rgb": None, "palette": None}
    records = {
        "mmcq": [failed("c1"), *mmcq],
        "all": [*every, record("c2", agent="all", status="rejected", attempts=[attempt("x")])],
        "catch": [record("c1", agent="catch", kind="control")],
        "humans": [record("1017.jpg", agent="human:05", answer=empty, **human)],
    }
    return write_run(tmp_path / "run", stimuli, records, agents, samples=2)


def _exported(run: Path) -> list[dict[str, Any]]:
    """What is to be exported by default, the plain way."""
    folder = Run(run)
    rows = [row for name in ("mmcq", "all", "humans") for row in folder.latest(name)]
    return [row for row in rows if row["status"] != "rejected"]


def test_jsonl_is_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _mixed(tmp_path)
    out = tmp_path / "new" / "all.jsonl"
    export_run(run, "jsonl", out)
    rows = [orjson.loads(text) for text in out.read_bytes().splitlines()]
    assert rows == _exported(run)
    assert [problems(row) for row in rows] == [[]] * len(rows)
    assert (tmp_path / "new" / "all.jsonl.stimuli.jsonl").read_bytes() == (run / "stimuli.jsonl").read_bytes()
    about = orjson.loads((tmp_path / "new" / "all.jsonl.export.json").read_bytes())
    assert (about["run"], about["seed"], about["sample"]) == ("0123456789ab", 3, "all")
    assert about["agents"]["mmcq"]["settings"] == {"quality": 1}
    assert about["left_out"] == {"rejected": 1, "control": 1}
    assert about["records"] == {"mmcq": 4, "all": 6, "human:05": 1}
    assert "1 rejected left out (--include-rejected)" in capsys.readouterr().out
    assert len(list((tmp_path / "new").iterdir())) == 3


def test_what_is_asked_for(tmp_path: Path) -> None:
    run = _mixed(tmp_path)
    export_run(run, "jsonl", tmp_path / "a", sample=1)
    assert {orjson.loads(text)["sample"] for text in (tmp_path / "a").read_bytes().splitlines()} == {1}
    export_run(run, "jsonl", tmp_path / "b", include_rejected=True, include_control=True)
    rows = [orjson.loads(text) for text in (tmp_path / "b").read_bytes().splitlines()]
    assert sum(row["status"] == "rejected" for row in rows) == 1
    assert sum(row["kind"] == "control" for row in rows) == 1


def _text(value: Any) -> Any:
    """A table's cell: nested values as JSON."""
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else value


def _flat(row: dict[str, Any], stimuli: dict[str, Any]) -> dict[str, Any]:
    """A record as a table's row, the plain way."""
    parts = ("answer", "error", "provenance", "timing", "worker")
    flat = {key: value for key, value in row.items() if key not in parts}
    flat |= {f"{part}.{key}": value for part in parts for key, value in (row[part] or {}).items()}
    flat |= {"raw": _text(row["raw"]), "rejected_attempts": len(row["attempts"])}
    if row["task"] == WORD:
        flat["by_rules.word"] = row["answer"]["word"]  # "together" keeps the papers' rules
    shown = stimuli.get(row["stimulus"], {})
    flat |= {f"stimulus.{key}": value for key, value in shown.items() if key not in ("id", "task", "meta")}
    flat |= {f"meta.{key}": str(value) if key == "odd" else value for key, value in shown.get("meta", {}).items()}
    return {key: value for key, value in flat.items() if value is not None}


def _stimuli(run: Path) -> dict[str, Any]:
    rows = list(Run(run).stimuli())
    return {row["id"]: row for row in rows} | {row["benchmark_id"]: row for row in rows if "benchmark_id" in row}


def test_parquet_read_by_pyarrow(tmp_path: Path) -> None:
    run = _mixed(tmp_path)
    out = tmp_path / "t.parquet"
    export_run(run, "parquet", out)
    table = pq.read_table(out)
    read = []
    for row in table.to_pylist():
        if row["created"] is not None:
            assert row["created"].tzinfo is not None
            row["created"] = row["created"].strftime("%Y-%m-%dT%H:%M:%S.") + f"{row['created'].microsecond // 1000:03}Z"
        read.append({key: value for key, value in row.items() if value is not None})
    wanted = [_flat(row, _stimuli(run)) for row in _exported(run)]
    for row in wanted:
        row["attempts"] = [{**tried, "answer": _text(tried["answer"])} for tried in row["attempts"]]
    assert read == wanted
    types = {field.name: str(field.type) for field in table.schema}
    assert types["seed"] == types["answer.tokens"] == types["meta.n"] == "int64"
    assert types["answer.score"] == types["meta.f"] == types["stimulus.pixels_per_degree"][:0] + "double"
    assert types["answer.forced_first"] == types["answer.ended_early"] == types["meta.yes"] == "bool"
    assert types["created"] == "timestamp[ms, tz=UTC]"
    assert types["answer.fixations"] == "list<element: list<element: double>>"
    assert types["answer.palette"] == "list<element: struct<rgb: list<element: int64>, population: int64>>"
    assert types["meta.odd"] == types["meta.pool"] == "string"


def _without_controls(text: str) -> str:
    """As CSV has a text: control characters but for tabs and line ends are U+FFFD."""
    return "".join("\ufffd" if category(one) == "Cc" and one not in "\t\r\n" else one for one in text)


def test_csv_read_by_csv_and_pandas(tmp_path: Path) -> None:
    run = _mixed(tmp_path)
    out = tmp_path / "t.csv"
    export_run(run, "csv", out)
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [_flat(row, _stimuli(run)) for row in _exported(run)]

    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else _without_controls(str(_text(value)))

    for row, flat in zip(rows, wanted, strict=True):
        assert {key: value for key, value in row.items() if value != ""} == {k: text(v) for k, v in flat.items()}
    frame = pandas.read_csv(out)
    assert frame["seed"].dropna().astype(int).unique().tolist() == [7]
    assert frame["meta.n"].tolist()[:4] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (record(answer={**ANSWERS[COLOR], "mood": 1}), "mood"),
        (record(task=CAPTION, answer={**ANSWERS[CAPTION], "tokens": 1.5}), "answer.tokens: "),
        (record(created="yesterday"), "created"),
        (record(timing=[1]), "timing"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    run = write_run(tmp_path / "run", [], {"mmcq": [row]}, {"mmcq": agent_entry(COLOR, CAPTION)})
    for form in ("csv", "parquet"):
        with pytest.raises(InputError, match=f"mmcq, stimulus 's1': .*{reason}"):
            export_run(run, form, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# --- the published benchmark ---------------------------------------------------------------------------------------


def _benchmark(tmp_path: Path, **changes: Any) -> Path:
    path = [[-5, -1], [0, 0], [639, 479], [639.99, 479.99], [640, 480], [320, 240], *([[1, 2]] * 20)]
    stimuli = [
        stimulus("c1", COLOR, benchmark_id="1017.jpg"),
        stimulus("c2", COLOR),
        stimulus("o1", OBJECTS),
        stimulus("g1", GAZE),
        stimulus("g2", GAZE, mode="search", target_box=[0, 0, 5, 5]),
        stimulus("t1", CAPTION),
        stimulus("w1", WORD),
    ]
    rows = {
        "c2": record("c2", agent="all"),
        "c1": record("c1", agent="all", answer={**ANSWERS[COLOR], "color": "blue"}),
        "o1": record("o1", OBJECTS, "all", answer={"labels": ["Big, bad  Cat", "Sofa"], "scores": None, "boxes": None}),
        "g1": record("g1", GAZE, "all", answer={**ANSWERS[GAZE], "fixations": path}),
        "g2": record("g2", GAZE, "all"),
        "t1": record("t1", CAPTION, "all"),
        "w1": record("w1", WORD, "all"),
        **changes,
    }
    agents = {"all": agent_entry(*TASKS), "a~b": agent_entry("conversation")}
    lines = [row for row in rows.values() if row is not None]
    return write_run(tmp_path / "run", stimuli, {"all": [*lines, record("w1", WORD, "all", sample=1)]}, agents)


def test_turingtest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sub" / "mission"
    export_run(_benchmark(tmp_path), "turingtest", out)
    files = {path.name: json.loads(path.read_text()) for path in (out / "all").iterdir()}
    assert sorted(files) == ["caption.json", "color.json", "fv.json", "object.json", "word.json"]
    assert list(files["color.json"].items()) == [("1017.jpg", "blue"), ("c2", "red")]
    assert files["object.json"] == {"o1": "big bad cat, sofa"}
    assert files["caption.json"] == {"t1": "a cat, on a sofa"}
    assert files["word.json"] == {"w1": "together"}
    corner = [1279, 1023]
    assert files["fv.json"] == {
        "g1": [[0, 0], [0, 0], [1278, 1021], corner, corner, [640, 512], *([[2, 4]] * 9)],
    }
    assert all(type(number) is int for point in files["fv.json"]["g1"] for number in point)
    assert sorted(path.name for path in out.iterdir()) == ["_export.json", "_stimuli.jsonl", "all"]
    about = json.loads((out / "_export.json").read_text())
    assert (about["run"], about["sample"], about["missing"]) == ("0123456789ab", 0, {})
    assert about["agents"]["all"]["digest"] == "d" * 64
    assert about["agents_notes"]["all"]["points_moved_to_the_edge"] == 2
    assert about["agents_notes"]["all"]["scanpaths_cut_to_15"] == 1
    assert "a~b: nothing of its tasks is in this benchmark" in capsys.readouterr().out
    import_files(sorted((out / "all").iterdir()), tmp_path / "back", name="again")
    assert len(list(Run(tmp_path / "back").records("published"))) == 6


def test_how_a_picture_fills_its_frame_is_a_column(tmp_path: Path) -> None:
    """Empty where an answer does not say it; the other columns are those of earlier versions, in their order."""
    screen = {**ANSWERS[GAZE], "frame": [1680, 1050], "fit": "bars"}
    rows = [record("g1", GAZE, "all"), record("g2", GAZE, "all", answer=screen)]
    run = write_run(tmp_path / "run", [], {"all": rows}, {"all": agent_entry(GAZE)})
    export_run(run, "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["answer.fit"] for row in cells] == ["", "bars"]
    assert [name for name in cells[0] if name.startswith("answer.")] == [f"answer.{key}" for key in screen]
    export_run(run, "parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["answer.fit"].to_pylist() == [None, "bars"]


def test_the_benchmarks_frame_is_that_of_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1280 x 1024, of which half is 640 x 512; a picture of another shape is stretched to it, with a word."""
    stimuli = []
    rows = []
    frames = {"half": [640, 512], "other": [640, 480], "bars": [1680, 1050]}
    for name, (width, height) in {"half": (640, 512), "other": (640, 480), "bars": (640, 512)}.items():
        PILImage.new("RGB", (width, height)).save(tmp_path / f"{name}.png")
        stimuli.append(stimulus(name, GAZE, image=f"{name}.png"))
        fit = {"fit": "bars"} if name == "bars" else {}
        middle = [frames[name][0] / 2, frames[name][1]]
        answer = {**ANSWERS[GAZE], "frame": frames[name], "fixations": [middle, [frames[name][0] / 4, 0]], **fit}
        rows.append(record(name, GAZE, "all", answer=answer))
    run = write_run(tmp_path / "run", stimuli, {"all": rows}, {"all": agent_entry(GAZE)})
    export_run(run, "turingtest", tmp_path / "out")
    # On the screen with bars 1050 pixels are the picture's 512: a fourth of the width is 640 - 420 * 1024 / 1050 here.
    assert json.loads((tmp_path / "out" / "all" / "fv.json").read_text()) == {
        "half": [[640, 1023], [320, 0]],
        "other": [[640, 1023], [320, 0]],
        "bars": [[640, 1023], [230, 0]],
    }
    said = capsys.readouterr().out
    assert "all: 1 scanpath on pictures of another shape than 1280 x 1024, the benchmark's, stretched to it" in said
    about = json.loads((tmp_path / "out" / "_export.json").read_text())
    assert about["agents_notes"]["all"]["scanpaths_stretched_from_another_shape"] == 1


def test_every_gap_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected = record("t1", CAPTION, "all", status="rejected", attempts=[attempt("no")])
    run = _benchmark(tmp_path, c1=failed("c1", agent="all"), o1=None, t1=rejected)
    with pytest.raises(InputError, match="3 answers are missing") as caught:
        export_run(run, "turingtest", tmp_path / "out")
    named = {problem.field: problem.message for problem in caught.value.problems}
    assert named["c1"] == "failed: bad_image: it is broken"
    assert named["o1"] == "unanswered"
    assert named["t1"] == "rejected (--include-rejected exports it)"
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    export_run(run, "turingtest", tmp_path / "out", allow_missing=True)
    assert "all: 1 of 2 color_estimation answers are missing" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out" / "all").iterdir()) == ["color.json", "fv.json", "word.json"]
    export_run(run, "turingtest", tmp_path / "two", allow_missing=True, include_rejected=True)
    assert (tmp_path / "two" / "all" / "caption.json").exists()


# --- usage ----------------------------------------------------------------------------------------------------------


def test_the_forms_for_machines_count_peoples_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three words and two paths of people beside one of each of a machine, counted in summary and side-car."""
    person = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None, "stimulus_sha256": None}
    stimuli = [stimulus("w1", WORD), stimulus("g1", GAZE)]
    people = [record("w1", WORD, f"human:{who}", answer=ANSWERS[WORD], **person) for who in range(3)]
    people += [record("g1", GAZE, f"human:{who}", answer=ANSWERS[GAZE], **person) for who in range(2)]
    machine = [record("w1", WORD, "all"), record("g1", GAZE, "all")]
    run = write_run(tmp_path / "run", stimuli, {"all": machine, "humans": people}, {"all": agent_entry(WORD, GAZE)})
    for form, number, side_car in (
        ("turingtest", 5, tmp_path / "turingtest" / "_export.json"),
        ("coco-search18", 2, tmp_path / "coco-search18.export.json"),
    ):
        export_run(run, form, tmp_path / form, allow_missing=True)
        assert f"; {number} imported left out (this format is only for answers of machines;" in capsys.readouterr().out
        assert json.loads(side_car.read_text())["left_out"] == {"imported": number}
    alone = write_run(tmp_path / "alone", stimuli, {"humans": people}, {})
    for form in ("turingtest", "coco-search18"):
        with pytest.raises(InputError, match=r"there is nothing to export; .* imported left out"):
            export_run(alone, form, tmp_path / "nothing", allow_missing=True)
        assert not (tmp_path / "nothing").exists()


def test_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere" / "deeper")
    run = _mixed(tmp_path)
    with pytest.raises(InputError, match="no export format 'xml'"):
        export_run(run, "xml", tmp_path / "out")
    with pytest.raises(InputError, match="not a run folder"):
        export_run(tmp_path / "none", "csv", tmp_path / "out")
    for form in FORMATS:
        with pytest.raises(InputError, match=r"to export|are missing"):
            export_run(run, form, tmp_path / "out", sample=9)
    for out in (".", ".."):
        with pytest.raises(InputError, match="has no name of its own"):
            export_run(run, "csv", out, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "run"]


def test_words_stand_as_written_and_by_the_papers_rules(tmp_path: Path) -> None:
    """A table of words has both, as judges see the one and the record the other; catch trials pass no rules."""
    written = {"cats": ("cat", ""), "the": ("", "stop_word"), "ocean": ("ocean", "")}
    answers = [record(f"c{at}", WORD, "all", answer={**ANSWERS[WORD], "word": word}) for at, word in enumerate(written)]
    stimuli = [stimulus(f"c{at}", WORD, cue="thing") for at in range(len(written))]
    run = write_run(tmp_path / "run", stimuli, {"all": answers}, {"all": agent_entry(WORD)})
    export_run(run, "csv", tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["answer.word"], row["by_rules.word"], row["by_rules.rule"]) for row in rows] == [
        (word, *by_rules) for word, by_rules in written.items()
    ]
