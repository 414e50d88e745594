"""Reading sets: the three formats mean the same, and whatever stands in a file comes out as a row or a problem."""

import contextlib
import csv
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.errors import InputError
from agents.stimuli import canonical, parse_row
from serving.sets import stimulus_set
from serving.sets.set_rows import Row
from serving.sets.stimulus_set import read_rows

PICTURES = Path(__file__).parents[3] / "examples" / "images"
WORD = {"id": "w", "task": "word_association", "cue": "cat"}
ROWS: list[dict[str, Any]] = [
    {**WORD, "id": "0012", "frequency": 1.5, "meta": {"a": 1, "b": None, "c": "1"}},
    {**WORD, "cue": 'say "hi", you\nthere', "version": "prompted", "examples": [["a bit", "Happy;"], ["x", "y"]]},
    {"id": "12", "task": "conversation", "names": ["Ann", "Bob"], "exchanges": 12, "who_starts": "A", "type": "HM"},
    {"id": "a/1.jpg", "task": "color_estimation", "image": "1.jpg", "present": ["cat"], "source_id": "007"},
    {
        "id": "s",
        "task": "attention_prediction",
        "image": "1.jpg",
        "mode": "search",
        "target_box": [1, 2.5, 3, 4],
        "target_present": True,
        "max_fixations": 15,
        "pixels_per_degree": 32,
    },
    {"id": "日本/é", "task": "image_captioning", "image": "ü ü.png", "domain": "near", "benchmark_id": "1"},
]


def jsonl(folder: Path, *lines: bytes | str | dict[str, Any], name: str = "set.jsonl") -> Path:
    texts = [line if isinstance(line, bytes | str) else json.dumps(line) for line in lines]
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    (folder / name).write_bytes(b"\n".join(encoded) + b"\n")
    return folder / name


def said(row: Row) -> list[str]:
    return [f"{problem.field}: {problem.message}" for problem in row.problems]


def only(path: Path, **options: Any) -> Row:
    [row] = read_rows(path, **options)
    return row


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_mean_the_same_as_lines_of_json(tmp_path: Path, end: str) -> None:
    names = dict.fromkeys(name for row in ROWS for name in row)
    with (tmp_path / "set.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator=end)
        table.writerow(names)
        for row in ROWS:
            cells = [row.get(name, "") for name in names]
            table.writerow([cell if isinstance(cell, str) else json.dumps(cell) for cell in cells])
    pq.write_table(pa.table({name: [row.get(name) for row in ROWS] for name in names}), tmp_path / "set.parquet")
    rows = list(read_rows(jsonl(tmp_path, *ROWS)))
    stimuli = [parse_row(orjson.dumps(row), root=tmp_path) for row in ROWS]
    wanted = [canonical(stimulus) for stimulus in stimuli]
    assert [(row.stimulus, row.canonical) for row in rows] == [*zip(stimuli, wanted, strict=True)]
    assert stimuli[3].images()[0].path == tmp_path / "1.jpg"
    from_csv = list(read_rows(tmp_path / "set.csv"))
    assert [row.canonical for row in from_csv] == wanted
    assert [row.line for row in from_csv] == [2, 3, 5, 6, 7, 8]
    assert [row.canonical for row in read_rows(tmp_path / "set.parquet")] == wanted


@pytest.mark.parametrize("name", ["set.jsonl", "set.csv"])
def test_bom_crlf_blank_lines_and_a_last_line_without_end(tmp_path: Path, name: str) -> None:
    if name == "set.csv":
        text = "id,task,cue\r\n\r\nw,word_association,cat\r\n,,\r\nx,word_association,dog"
    else:
        text = json.dumps(WORD) + "\r\n\r\n  \t\r\n" + json.dumps({**WORD, "id": "x"})
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    rows = list(read_rows(tmp_path / name))
    assert [(row.id, row.problems) for row in rows] == [("w", ()), ("x", ())]
    assert [row.line for row in rows] == ([3, 5] if name == "set.csv" else [1, 4])


def test_a_task_fills_in_where_there_is_none(tmp_path: Path) -> None:
    path = jsonl(tmp_path, '{"id":"a","cue":"x"}', "{}", '{"id":"e","cue":"x","meta":{"task":"mine"}}')
    rows = list(read_rows(path, "word_association"))
    assert [row.task for row in rows] == ["word_association"] * 3
    assert [said(row) for row in rows] == [[], ["id: is missing", "cue: is missing"], []]
    for text in ("id,cue\na,x\n", "id,task,cue\na,,x\n"):
        (tmp_path / "set.csv").write_text(text)
        assert only(tmp_path / "set.csv", task="word_association").canonical == rows[0].canonical


CASES: list[tuple[Any, list[str]]] = [  # a line, and how each of its problems begins
    ('{"id":"a","task":"word_association","cue":"x"', ["None: not JSON: unexpected end of data at column 46"]),
    ("[1]", ["None: must be an object"]),
    (b'{"id":"\xff"}', ["None: not JSON: "]),
    ('{"id":' + "[" * 100_000, ["None: not JSON: "]),
    ({**WORD, "frequency": float("nan")}, ["None: not JSON: "]),
    (
        '{"id":"w","task":"word_association","cue":"","meta":{"x":1,"x":1}}',
        ["None: the key 'x' stands twice in one object", "cue: must not be empty"],
    ),
    ({**WORD, "task": "words"}, ["task: must be one of color_estimation, "]),
    ({**WORD, "topic": "x"}, ["topic: is no field here"]),
    ({**WORD, "meta": 5, "age": 3}, ["meta: must be an object"]),
    ({**WORD, "meta": {"a": [1]}}, ["meta.a: must be text, a finite number, true, false or null"]),
    (
        {"id": 5, "task": "conversation", "history": [{"speaker": "", "txt": "x", "at": -1}], "exchanges": "12"},
        [
            "id: must be text",
            "exchanges: must be a whole number",
            "history.0.speaker: must not be empty",
            "history.0.text: is missing",
            "history.0.at: must be at least 0",
            "history.0.txt: is no field here",
        ],
    ),
]


def begin(found: list[str], expected: list[str]) -> bool:
    return len(found) == len(expected) and all(map(str.startswith, sorted(found), sorted(expected)))


@pytest.mark.parametrize(("line", "problems"), CASES, ids=range(len(CASES)))
def test_every_problem_of_a_row_is_said(tmp_path: Path, line: Any, problems: list[str]) -> None:
    good, bad, after = read_rows(jsonl(tmp_path, {**WORD, "id": "before"}, line, {**WORD, "id": "after"}))
    assert begin(said(bad), problems), said(bad)
    assert {(problem.where, problem.line) for problem in bad.problems} == {(str(tmp_path / "set.jsonl"), 2)}
    assert (bad.stimulus, bad.canonical) == (None, None)
    assert good.problems == after.problems == ()


def test_a_line_over_the_cap_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_set, "MAX_LINE", 1000)
    long = "x" * 2001
    with pytest.raises(InputError, match="cannot be read on") as caught:
        list(read_rows(jsonl(tmp_path, WORD, long, WORD)))
    assert str(caught.value.problems[0]).endswith("set.jsonl:2: longer than 1,000 bytes")


CSV_CASES: list[tuple[bytes, list[str]]] = [
    (b"w,word_association,cat,x,,", ["frequency: must be a number"]),
    (b"w,word_association,cat,007,,", []),
    (b"w,conversation,,,24.0,", []),
    (b"w,conversation,,,24.5,", ["exchanges: must be a whole number"]),
    (b"w,word_association,,x,,[1", ["frequency: must be a number", "cue: is missing", "meta: not JSON: Expecting"]),
    (b'w,word_association,cat,,,"{""a"":1,""a"":2}"', ["meta: not JSON: the key 'a' stands twice in one object"]),
    (b"w,word_association", ["None: 2 cells, but the header has 6"]),
    (b'w,word_association,"a"b,,,', ["None: not CSV: ',' expected after"]),
    (b"w,word_association,\xc3\xa9\xe9,,,", ["cue: is not UTF-8"]),
    (b",word_association,cat,,,", ["id: is missing"]),
]


@pytest.mark.parametrize(("line", "problems"), CSV_CASES, ids=range(len(CSV_CASES)))
def test_csv_cells(tmp_path: Path, line: bytes, problems: list[str]) -> None:
    text = b"id,task,cue,frequency,exchanges,meta\n%b\nafter,word_association,dog,,,\n" % line
    (tmp_path / "set.csv").write_bytes(text)
    row, after = read_rows(tmp_path / "set.csv")
    assert begin(said(row), problems), said(row)
    assert row.line == 2
    assert (after.id, after.problems) == ("after", ())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("set.csv", "id;task;cue\na;word_association;Bär, braun\n".encode()),
        ("set.csv", "sep=;\r\nid;task;cue\r\na;word_association;Bär, braun\r\n".encode()),
        ("set.tsv", "id\ttask\tcue\na\tword_association\tBär, braun\n".encode()),
        ("set.csv", "id\ttask\tcue\na\tword_association\tBär, braun\n".encode("utf-16")),
        ("set.csv", '# our cues\nid,task,cue\na,word_association,"Bär, braun"\n'.encode()),
    ],
)
def test_tables_of_other_programs(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    [row] = read_rows(tmp_path / name)
    assert (row.id, row.problems, row.stimulus and row.stimulus.cue) == ("a", (), "Bär, braun")


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("cues.csv", "cue;frequency\nMüll;1\nStraße;2\n", "cp1252"),
        ("cues.txt", "Müll\r\n\r\nStraße\r\n", "cp1252"),
        ("cues.txt", "Müll\nStraße\n", "utf-16"),
    ],
)
def test_encodings_of_spreadsheets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, encoding: str
) -> None:
    """A guess is told, and words are those that `import` reads in such a file."""
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert [row.stimulus and row.stimulus.cue for row in read_rows(tmp_path / name)] == ["Müll", "Straße"]
    told = "was read as Windows-1252" in capsys.readouterr().err
    assert told == (encoding == "cp1252")


def test_a_header_that_cannot_be_used_says_everything(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("id,task,cue,cue,,notes,notes\n1,2,3,4,5,6,7\n")
    with pytest.raises(InputError, match="header") as caught:
        list(read_rows(tmp_path / "set.csv"))
    assert [(problem.line, problem.field, problem.message) for problem in caught.value.problems] == [
        (1, "cue", "two columns of this name, 3 and 4"),
        (1, "notes", "two columns of this name, 6 and 7"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("set.jsonl", b"\n \r\n", "an empty set"),
        ("set.csv", b"id,task,cue\n\n", "an empty set"),
        ("set.csv", b"id,task,\xc3\xa9\xff\n", "header"),
        ("set.jsonl.gz", b"\x1f\x8b", "an unknown kind of set"),
        ("set.json", b'[{"id":"a"}]', "a JSON document"),
        ("set.json", b'{\n"id":"a"}', "a JSON document"),
        ("set.csv", "id\n".encode("utf-16")[:-1], "UTF-16, but its end is cut off"),
        ("set.jsonl", "{}".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_no_set(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_rows(tmp_path / name))
    assert str(caught.value).startswith(str(tmp_path / name))


def test_paths_that_lead_to_no_set(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    for path, task, message in (
        (tmp_path / "missing.jsonl", None, "No such file or directory"),
        (tmp_path / "fifo.jsonl", None, "not a regular file"),
        (tmp_path / "loop.jsonl", None, "Too many levels"),
        (tmp_path, None, "say with task"),
        (tmp_path, "conversation", "shows no image"),
        (tmp_path, "color_estimation", "an empty set"),
        ("", None, "there is no set"),
    ):
        with pytest.raises(InputError, match=message):
            list(read_rows(path, task))


def test_a_folder_is_the_images_in_it(tmp_path: Path) -> None:
    names = ["b.jpg", "a.PNG", "a/x.jpeg", "a-b.webp", "a0/x.png", "z/y/x.tiff", "z/y.gif", "heif.HEIC", "é.bmp"]
    for name in [*names, "notes.txt", ".hidden.jpg", "z/.thumbs/t.jpg", "jpg", "Thumbs.db"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "empty.jpg").mkdir()
    os.mkfifo(tmp_path / "fifo.png")
    links: dict[str, str | Path] = {"dangling.png": "nowhere", "linked": PICTURES, "a/up": "..", "self": "self"}
    for name, target in links.items():  # to folders they are followed, but never in a circle
        (tmp_path / name).symlink_to(target)
    rows: list[Any] = list(read_rows(tmp_path, "color_estimation"))
    linked = [f"linked/{path.name}" for path in PICTURES.iterdir()]
    assert [row.id for row in rows] == sorted([*names, *linked, "dangling.png", "fifo.png"])
    for row in rows:
        assert row.canonical == orjson.dumps({"id": row.id, "image": row.id, "task": "color_estimation"})
        assert (row.line, row.where) == (None, str(tmp_path / row.id))
        assert row.stimulus.images()[0].path == tmp_path / row.id
    rewritten = jsonl(tmp_path, *[row.canonical for row in rows])
    assert [row.stimulus for row in read_rows(rewritten)] == [row.stimulus for row in rows]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=300)
    | st.lists(
        st.sampled_from(
            [b'{"id":"a","task":"word_association"', b',"cue":"x"', b"}", b"\n", b"\xff", b'"', b",", b"\\ud800"]
        ),
        max_size=20,
    ).map(b"".join),
    name=st.sampled_from(["any.jsonl", "any.csv"]),
)
def test_any_bytes_are_rows_problems_or_an_input_error(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(InputError):
        for row in read_rows(tmp_path / name):
            assert (row.stimulus is None) == (row.canonical is None) == bool(row.problems)
            assert all(problem.message and str(problem).isprintable() for problem in row.problems)
            assert row.stimulus is None or parse_row(row.canonical or b"", root=tmp_path) == row.stimulus
            assert not row.raw or isinstance(orjson.loads(row.raw), dict)


def test_the_metadata_of_an_imagefolder_are_a_set(tmp_path: Path) -> None:
    """`datasets` names the picture `file_name`, beside the metadata; other columns are of `meta`."""
    path = jsonl(tmp_path, {"file_name": "coffee.png", "text": "a cup"}, name="metadata.jsonl")
    row = only(path, task="image_captioning")
    assert row.stimulus is not None
    assert (row.id, row.stimulus.meta) == ("coffee.png", {"text": "a cup"})
    assert said(only(path)) != []  # nothing says which task
