"""Reading sets: the three formats mean the same, and whatever stands in a file comes out as a row or a problem."""

from __future__ import annotations

import csv
import io
import json
import os
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest
from bad_images import BadImages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.errors import InputError
from agents.stimuli import TASKS, canonical, parse_row
from serving.runs import image_folder, stimulus_set
from serving.runs.stimulus_set import Row, read_rows

WORD = {"id": "w", "task": "word_association", "cue": "cat"}
ROWS: list[dict[str, Any]] = [
    {"id": "0012", "task": "word_association", "cue": "cat", "frequency": 1.5, "meta": {"a": 1, "b": None, "c": "1"}},
    {
        "id": "p",
        "task": "word_association",
        "cue": 'say "hi", you\nthere',
        "version": "prompted",
        "examples": [["a bit", "Happy;"], ["x", "y"]],
    },
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
    texts = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    (folder / name).write_bytes(b"\n".join(texts) + b"\n")
    return folder / name


def as_csv(rows: list[dict[str, Any]], end: str = "\r\n") -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    table = csv.writer(out, lineterminator=end)
    table.writerow(names)
    for row in rows:
        cells = [row.get(name, "") for name in names]
        table.writerow([cell if isinstance(cell, str) else json.dumps(cell) for cell in cells])
    return out.getvalue()


def said(row: Row) -> list[str]:
    return [f"{problem.field}: {problem.message}" for problem in row.problems]


def only(path: Path, **options: Any) -> Row:
    [row] = read_rows(path, **options)
    return row


def test_jsonl_rows_are_their_stimuli(tmp_path: Path) -> None:
    path = jsonl(tmp_path, *ROWS)
    rows = list(read_rows(path))
    assert [row.line for row in rows] == [1, 2, 3, 4, 5, 6]
    for row, written in zip(rows, ROWS, strict=True):
        expected = parse_row(orjson.dumps(written), root=tmp_path)
        assert row.problems == ()
        assert row.stimulus == expected
        assert row.canonical == row.raw == canonical(expected)
        assert (row.id, row.task, row.where) == (written["id"], written["task"], str(path))
    assert rows[3].stimulus.images()[0].path == tmp_path / "1.jpg"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_means_the_same_as_jsonl(tmp_path: Path, end: str) -> None:
    (tmp_path / "set.csv").write_text(as_csv(ROWS, end), encoding="utf-8", newline="")
    from_csv = list(read_rows(tmp_path / "set.csv"))
    from_jsonl = list(read_rows(jsonl(tmp_path, *ROWS)))
    assert [row.canonical for row in from_csv] == [row.canonical for row in from_jsonl]
    assert [row.line for row in from_csv] == [2, 3, 5, 6, 7, 8]


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
    path = jsonl(
        tmp_path,
        '{"id":"a","cue":"x"}',
        '{ "cue" : "\\"task\\"", "id" : "b" }',
        "{}",
        '{"id":"d","cue":"task"}',
        '{"id":"e","cue":"x","meta":{"task":"mine"}}',
    )
    rows = list(read_rows(path, "word_association"))
    assert [row.task for row in rows] == ["word_association"] * 5
    assert [said(row) for row in rows] == [[], [], ["id: missing", "cue: missing"], [], []]
    (tmp_path / "set.csv").write_text("id,cue\na,x\n")
    assert only(tmp_path / "set.csv", task="word_association").canonical == rows[0].canonical
    (tmp_path / "set.csv").write_text("id,task,cue\na,,x\n")
    assert only(tmp_path / "set.csv", task="word_association").canonical == rows[0].canonical


def test_a_task_is_no_choice_among_the_rows(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"id": "a", "task": "conversation"},
        {"id": "b", "task": "conversation", "cue": "x"},
        {"id": "c", "task": "conversations"},
        '{"id": "d", "cue": "x", "task": "conversation", "task": "word_association"}',
        {"id": "e", "cue": "x", "task": "word_association"},
    ]
    other = "task: is 'conversation', but --task says 'word_association'"
    read = list(read_rows(jsonl(tmp_path, *rows), "word_association"))
    assert [said(row) for row in read] == [
        [other],
        [other, "cue: not a field of conversation"],
        ["task: unknown task 'conversations'; did you mean 'conversation'?"],
        ["task: stands more than once in the same object"],
        [],
    ]
    assert [row.task for row in read] == ["conversation", "conversation", None, None, "word_association"]
    assert all(row.stimulus is row.canonical is None and row.raw for row in read[:4])
    (tmp_path / "set.csv").write_text("id,task,topic\na,conversation,\nb,,\nc,conversation,books\n")
    read = list(read_rows(tmp_path / "set.csv", "conversation"))
    assert [said(row) for row in read] == [[], [], []]
    read = list(read_rows(tmp_path / "set.csv", "word_association"))
    assert [said(row)[0] for row in read] == [other, "cue: missing", other]


def test_root_says_where_the_images_are(tmp_path: Path) -> None:
    row = only(jsonl(tmp_path, {"id": "a", "task": "color_estimation", "image": "i.png"}), root=tmp_path / "other")
    assert row.stimulus.images()[0].path == tmp_path / "other" / "i.png"


CASES: list[tuple[Any, list[str]]] = [
    ('{"id":"a","task":"word_association","cue":"x"', ["None: not JSON: the line ends too early (column 46)"]),
    ('{"id":"a" "task":1}', ["None: not JSON: a comma or the end is expected at column 11"]),
    ("{} {}", ["None: not JSON: something follows the object at column 4"]),
    ("{'id':1}", ['None: not JSON: a field name in double quotes (") is expected at column 2']),
    ("[1]", ["None: must be a JSON object {…}, not a list"]),
    ("null", ["None: must be a JSON object {…}, not null"]),
    (b'{"id":"\xff"}', ["None: not UTF-8: byte 0xff at position 8"]),
    ('{"id":' + "[" * 100_000, ["None: nested more than 100 levels deep"]),
    ({**WORD, "meta": json.loads("[" * 120 + "]" * 120)}, ["None: nested more than 100 levels deep"]),
    ('{"id":' + "1" * 5000 + "}", ["None: not JSON that can be read: a number with thousands of digits"]),
    ('{"id":"w","task":"word_association","cue":"cat","frequency":NaN}', ["frequency: NaN is not a number in JSON"]),
    (
        '{"id":"w","task":"word_association","cue":"cat","meta":{"a":-Infinity}}',
        ["meta.a: -Infinity is not a number in JSON"],
    ),
    (
        '{"id":"w","task":"word_association","cue":"cat","frequency":1e999}',
        ["frequency: a number too large to be kept"],
    ),
    (
        '{"id":"w","task":"word_association","cue":"\\ud83d"}',
        ["cue: \\ud83d is half of a character (a lone surrogate)"],
    ),
    (
        '{"id":"w","task":"word_association","cue":"a","cue":"b","meta":{"x":1,"x":1}}',
        ["cue: stands more than once in the same object", "meta.x: stands more than once in the same object"],
    ),
    ({"id": "w", "cue": "x"}, [f"task: missing; one of {', '.join(TASKS)}"]),
    ({**WORD, "task": "words"}, [f"task: unknown task 'words'; one of {', '.join(TASKS)}"]),
    ({**WORD, "task": "word-association"}, ["task: unknown task 'word-association'; did you mean 'word_association'?"]),
    (
        {"id": "/w", "task": None, "cuee": 1},
        [
            "task: must be text, not null",
            "id: must not start with '/'",
            "cuee: unknown field; did you mean 'cue'? Free fields go into meta",
        ],
    ),
    ({**WORD, "cue": " "}, ["cue: must not be empty"]),
    ({**WORD, "cue": 5}, ["cue: must be text, not the number 5"]),
    ({**WORD, "topic": "x"}, ["topic: not a field of word_association"]),
    ({**WORD, "meta": {"a": [1]}}, ["meta.a: must be text, a number, true, false or null, not a list"]),
    ({**WORD, "meta": {"a": 2**64}}, ["meta: a: a whole number beyond 64 bits; write it as text"]),
    (
        {**WORD, "examples": [["a"], ["a", 1]]},
        ["examples.0: too few items: 1", "examples.1.1: must be text, not the number 1"],
    ),
    ({**WORD, "version": "prompted"}, ["examples: version 'prompted' needs examples: [[cue, guess], ...]"]),
    (
        {"id": "w", "task": "attention_prediction", "image": "../i.png", "mode": "search", "window": 0},
        [
            "window: must be at least 1",
            "mode: mode 'search' needs target_image, target_box or target_mask",
        ],
    ),
    (
        {"id": "w", "task": "attention_prediction", "mode": "search", "target_box": [1, 2, 3]},
        ["image: missing", "target_box: too few items: 3"],
    ),
    (
        {"id": "w", "task": "conversation", "names": ["A", "A"], "history": [{"speaker": "", "txt": "x", "at": -1}]},
        [
            "history.0.speaker: must not be empty",
            "history.0.text: missing",
            "history.0.at: must be at least 0",
            "history.0.txt: unknown field; did you mean 'text'?",
            "names: the two names must differ",
        ],
    ),
    (
        {"id": 5, "task": "word_association", "cue": "", "version": "Free", "frequency": "1"},
        [
            "id: must be text, not the number 5",
            "cue: must not be empty",
            "version: 'Free' is not allowed; did you mean 'free'?",
            "frequency: must be a number, not the text '1'",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "problems"), CASES, ids=range(len(CASES)))
def test_every_problem_of_a_row_is_said(tmp_path: Path, line: Any, problems: list[str]) -> None:
    good, bad, after = read_rows(jsonl(tmp_path, {**WORD, "id": "before"}, line, {**WORD, "id": "after"}))
    assert sorted(said(bad)) == sorted(problems)
    assert {(problem.where, problem.line) for problem in bad.problems} == {(str(tmp_path / "set.jsonl"), 2)}
    assert (bad.stimulus, bad.canonical) == (None, None)
    assert good.problems == after.problems == ()


def test_what_an_invalid_row_keeps(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        {**WORD, "cue": ""},
        {**WORD, "id": "../w"},
        {**WORD, "task": "words"},
        '{"id":"w","id":"x","task":"word_association","cue":"cat"}',
        '{"id":"w","task":"word_association","cue":"\\ud800","frequency":NaN}',
        "nothing",
    )
    rows = list(read_rows(path))
    assert [(row.id, row.task) for row in rows] == [
        ("w", "word_association"),
        (None, "word_association"),
        ("w", None),
        (None, "word_association"),
        ("w", "word_association"),
        (None, None),
    ]
    kept = [row.raw for row in rows]
    assert kept[-1] == b""
    assert [orjson.loads(raw)["id"] for raw in kept[:-1]] == ["w", "../w", "w", "x", "w"]
    assert all(b"\n" not in raw and b": " not in raw for raw in kept)
    [filled] = read_rows(jsonl(tmp_path, {"id": "a", "cue": ""}), "word_association")
    assert orjson.loads(filled.raw) == {"id": "a", "cue": "", "task": "word_association"}


def test_messages_are_short_and_cannot_drive_a_terminal(tmp_path: Path) -> None:
    long = "\x1b[2J" + "x" * 2_000_000
    row = only(jsonl(tmp_path, {**WORD, long: 1, "cue": 1, "version": long, "meta": {long: [long]}, "frequency": long}))
    text = "".join(map(str, row.problems))
    assert len(row.problems) == 5
    assert len(text.replace(str(tmp_path), "")) < 1500
    assert "\x1b" not in text


def test_a_line_of_two_million_characters(tmp_path: Path) -> None:
    long = "y" * 2_000_000
    one, other, meta = read_rows(jsonl(tmp_path, {**WORD, "cue": long}, WORD, {**WORD, "meta": {"text": long}}))
    assert said(one) == ["cue: longer than 200 characters"]
    assert other.problems == meta.problems == ()


@pytest.mark.parametrize("name", ["set.jsonl", "set.csv"])
def test_a_line_over_the_cap_is_skipped(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_set, "MAX_LINE", 100)
    long = "x" * 100_000
    (tmp_path / "set.jsonl").write_bytes(b"\n".join([orjson.dumps(WORD), long.encode(), orjson.dumps(WORD)]))
    (tmp_path / "set.csv").write_text(
        f"id,task,cue\nw,word_association,cat\nx,word_association,{long}\nw,word_association,cat"
    )
    good, bad, after = read_rows(tmp_path / name)
    assert said(bad) == ["None: longer than 16 MiB; left out unread"]
    assert (good.problems, after.problems) == ((), ())
    assert after.line == good.line + 2


NO_JSON = 'meta: must be JSON such as ["a", "b"] or {"a": 1}, not the text '
CSV_CASES: list[tuple[str, list[str]]] = [
    ("w,word_association,cat,x,,", ["frequency: must be a number, not the text 'x'"]),
    ("w,word_association,cat,NaN,,", ["frequency: must be a number, not the text 'NaN'"]),
    ("w,word_association,cat,1e999,,", ["frequency: must be a number, not the text '1e999'"]),
    ("w,word_association,cat,1_0,,", ["frequency: must be a number, not the text '1_0'"]),
    ("w,word_association,cat,.5,,", []),
    ("w,word_association,cat,007,,", []),
    ("w,conversation,,,24.0,", []),
    ("w,conversation,,,24.5,", ["exchanges: must be a whole number, not the number 24.5"]),
    ("w,conversation,,,many,", ["exchanges: must be a whole number, not the text 'many'"]),
    (
        "w,word_association,,x,,[1",
        ["frequency: must be a number, not the text 'x'", "cue: missing", NO_JSON + "'[1'"],
    ),
    ('w,word_association,cat,,,"{""a"":NaN}"', ["meta.a: NaN is not a number in JSON"]),
    ('w,word_association,cat,,,"{""a"":1,""a"":2}"', ["meta.a: stands more than once in the same object"]),
    ('w,word_association,cat,,,"{},""b"":2"', [NO_JSON + """'{},"b":2'"""]),
    ("w,word_association", ["None: 2 cells, but the header has 6"]),
    ("w,word_association,a,1,,,,", ["None: 8 cells, but the header has 6"]),
    (
        'w,word_association,"a"b,,,',
        ['None: a quoted cell is followed by something else than a comma; inside quotes, write " as ""'],
    ),
    (",word_association,cat,,,", ["id: missing"]),
]


@pytest.mark.parametrize(("line", "problems"), CSV_CASES, ids=range(len(CSV_CASES)))
def test_csv_cells(tmp_path: Path, line: str, problems: list[str]) -> None:
    text = f"id,task,cue,frequency,exchanges,meta\n{line}\nafter,word_association,dog,,,\n"
    (tmp_path / "set.csv").write_text(text)
    row, after = read_rows(tmp_path / "set.csv")
    assert sorted(said(row)) == sorted(problems)
    assert (after.id, after.problems) == ("after", ())


def test_csv_true_and_false_as_tables_write_them(tmp_path: Path) -> None:
    for text, value in (("TRUE", True), ("false", False), (" True ", True)):
        (tmp_path / "set.csv").write_text(f"id,task,image,target_present\na,attention_prediction,i.png,{text}\n")
        assert only(tmp_path / "set.csv").stimulus.target_present is value
    (tmp_path / "set.csv").write_text("id,task,image,target_present\na,attention_prediction,i.png,yes\n")
    assert said(only(tmp_path / "set.csv")) == ["target_present: must be true or false, not the text 'yes'"]


def test_csv_that_is_not_utf8_or_not_closed(tmp_path: Path) -> None:
    rows = (
        b'a,word_association,\xe9\nb,word_association,"x\n\xff"\nc,word_association,ok\nd,word_association,"open\ne,,\n'
    )
    (tmp_path / "set.csv").write_bytes(b"id,task,cue\n" + rows)
    found = list(read_rows(tmp_path / "set.csv"))
    assert [(row.line, said(row)) for row in found] == [
        (2, ["None: not UTF-8: byte 0xe9 at position 20 of line 2"]),
        (3, ["None: not UTF-8: byte 0xff at position 1 of line 4"]),
        (5, []),
        (6, ["None: a quoted cell that begins here is never closed (read as far as line 7)"]),
    ]


def test_a_header_that_cannot_be_used_says_everything(tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("id,Task,cue,cue,,notes\n1,2,3,4,5,6\n")
    with pytest.raises(InputError, match="header") as caught:
        list(read_rows(tmp_path / "set.csv"))
    assert [(problem.line, problem.field, problem.message) for problem in caught.value.problems] == [
        (1, "cue", "two columns of this name, 3 and 4"),
        (1, None, "column 5 has no name"),
        (1, "Task", "unknown field; did you mean 'task'? Free fields go into meta"),
        (1, "notes", "unknown field; did you mean 'names'? Free fields go into meta"),
        (1, "task", "missing: there is no such column"),
    ]
    (tmp_path / "set.csv").write_text("id;task;cue\n1;2;3\n")
    with pytest.raises(InputError) as caught:
        list(read_rows(tmp_path / "set.csv"))
    assert [problem.message for problem in caught.value.problems] == ["the columns must be separated by commas"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("set.jsonl", b"", "an empty set"),
        ("set.jsonl", b"\n \r\n", "an empty set"),
        ("set.csv", b"", "an empty set"),
        ("set.csv", b"id,task,cue\n\n", "an empty set"),
        ("set.csv", b"id,task,\xff\n", "header"),
        ("set.txt", b"cat\n", "unknown kind of set"),
        ("set", b"cat\n", "unknown kind of set"),
        ("set.jsonl.gz", b"\x1f\x8b", "unknown kind of set"),
        ("set.json", b'[{"id":"a"}]', "one JSON document"),
        ("set.json", b'{\n"id":"a"}', "one JSON document"),
        ("set.jsonl", "{}\n".encode("utf-16"), "UTF-16"),
        ("set.csv", "id\n".encode("utf-16"), "UTF-16"),
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
    for name, message in (
        ("missing.jsonl", "no such file or folder"),
        ("fifo.jsonl", "not a regular file"),
        ("loop.jsonl", "Too many levels"),
        ("a\0.jsonl", "cannot be read"),
        (".", "say with --task"),
    ):
        with pytest.raises(InputError, match=message):
            list(read_rows(tmp_path / name))
    with pytest.raises(InputError, match="no set is given"):
        list(read_rows(""))
    with pytest.raises(InputError, match="did you mean 'word_association'"):
        list(read_rows(tmp_path, "word_asociation"))
    for task in ("word_association", "conversation"):
        with pytest.raises(InputError, match="shows no image"):
            list(read_rows(tmp_path, task))
    with pytest.raises(InputError, match="an empty set"):
        list(read_rows(tmp_path, "color_estimation"))


def test_the_suffix_may_be_written_large(tmp_path: Path) -> None:
    assert only(jsonl(tmp_path, WORD, name="SET.JSONL")).id == "w"


def test_a_folder_is_the_images_in_it(tmp_path: Path) -> None:
    names = ["b.jpg", "a.PNG", "a/x.jpeg", "a-b.webp", "z/y/x.tiff", "z/y.gif", "heif.HEIC", "é.bmp"]
    for name in [*names, "notes.txt", ".hidden.jpg", "z/.thumbs/t.jpg", "jpg", "Thumbs.db"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "empty.jpg").mkdir()
    (tmp_path / "dangling.png").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo.png")
    rows = list(read_rows(tmp_path, "color_estimation"))
    assert [row.id for row in rows] == sorted([*names, "dangling.png", "fifo.png"])
    for row in rows:
        assert row.canonical == orjson.dumps({"id": row.id, "image": row.id, "task": "color_estimation"})
        assert (row.line, row.where) == (None, str(tmp_path / row.id))
        assert row.stimulus.images()[0].path == tmp_path / row.id
    rewritten = jsonl(tmp_path, *[row.canonical for row in rows])
    assert [row.stimulus for row in read_rows(rewritten)] == [row.stimulus for row in rows]


def test_links_to_folders_are_followed_but_never_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "set" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.png").write_bytes(b"")
    (tmp_path / "set" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "inner" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "self").symlink_to("self")
    assert list(image_folder.image_names(os.fsencode(tmp_path / "set"))) == [b"linked/e.png"]


def test_names_that_cannot_be_ids(tmp_path: Path) -> None:
    for name in (b"back\\slash.png", b"line\nbreak.png", b"latin\xe9.png", b"x" * 240 + b".png"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    rows = list(read_rows(tmp_path, "color_estimation"))
    assert [row.id for row in rows] == [None] * 4
    assert [said(row)[0] for row in rows] == [
        "id: must not contain a backslash",
        "None: the file's name is not UTF-8",
        "id: must not contain control or other unprintable characters",
        "id: longer than 200 characters",
    ]
    assert all(row.where.encode() for row in rows)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a.png", "-", "a-", "0"]), min_size=1, max_size=4), max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_folder_order_is_that_of_the_whole_names(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("order")
    names = {"/".join([*parts, "x.png"]) for parts in paths}
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert [name.decode() for name in image_folder.image_names(os.fsencode(folder))] == sorted(names)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([*TASKS, "search", "prompted", "A", "1.png", "../x"]),
)
FIELDS = sorted({name for row in ROWS for name in row} | {"history", "opener", "personas", "cuee", "window"})
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def read_all(path: Path, task: str | None = None) -> list[Row]:
    try:
        rows = list(read_rows(path, task))
    except InputError:
        return []
    for row in rows:
        assert (row.stimulus is None) == bool(row.problems)
        assert (row.canonical is None) == bool(row.problems)
        if row.raw:
            assert isinstance(orjson.loads(row.raw), dict)
        if row.stimulus is not None:
            assert row.id == row.stimulus.id
            assert parse_row(row.canonical, root=path.parent) == row.stimulus
        for problem in row.problems:
            assert problem.message
            assert str(problem).isprintable()
            assert "Input should" not in problem.message, "pydantic's own words"
    return rows


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8), task=st.sampled_from([*TASKS, None]))
def test_any_object_is_a_row_or_has_problems(tmp_path: Path, row: dict[str, Any], task: str | None) -> None:
    (tmp_path / "any.jsonl").write_text(json.dumps(row))
    [found] = read_all(tmp_path / "any.jsonl", task)
    text = json.dumps(row)
    if "NaN" not in text and "Infinity" not in text:
        try:
            parse_row(json.dumps({"task": task, **row} if task else row), root=tmp_path)
            good = True
        except ValueError:
            good = False
        assert good == (not found.problems)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                b'{"id":"a",',
                b'"task":"word_association"',
                b',"cue":"x"',
                b"}",
                b"\n",
                b"\r",
                b"\xff",
                b'"',
                b",",
                b"[",
                b":1",
                b"\\ud800",
                b"\0",
            ]
        ),
        max_size=20,
    ).map(b"".join),
    name=st.sampled_from(["any.jsonl", "any.csv"]),
)
def test_any_bytes_are_rows_problems_or_an_input_error(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    read_all(tmp_path / name)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.lists(
            st.sampled_from(["", "a", '"', "1.5", "TRUE", "[1]", '{"a":1}', "word_association", "\n", "\r", "é", ","])
            | st.text(max_size=5),
            min_size=6,
            max_size=6,
        ),
        max_size=4,
    )
)
def test_any_csv_cells(tmp_path: Path, rows: list[list[str]]) -> None:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["id", "task", "cue", "frequency", "examples", "meta"])
    table.writerows(rows)
    (tmp_path / "any.csv").write_bytes(out.getvalue().encode("utf-8", "replace"))
    found = read_all(tmp_path / "any.csv", "word_association")
    written = [row for row in rows if any(row)]
    assert len(found) == len(written)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True),
                "cue": st.text("ab ,\"'\n;é", min_size=1, max_size=9).filter(str.strip),
            },
            optional={
                "frequency": st.floats(-1e9, 1e9),
                "word_class": st.text('ab,"', min_size=1, max_size=5),
                "meta": st.dictionaries(
                    st.text("ab", max_size=2),
                    SCALARS.filter(lambda v: not isinstance(v, float) and (not isinstance(v, int) or abs(v) < 2**60)),
                    max_size=3,
                ),
            },
        ),
        min_size=1,
        max_size=5,
    )
)
def test_csv_and_jsonl_agree_on_any_words(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    rows = [{**row, "task": "word_association"} for row in rows]
    (tmp_path / "any.csv").write_text(as_csv(rows), newline="", encoding="utf-8")
    assert [row.canonical for row in read_rows(tmp_path / "any.csv")] == [
        row.canonical for row in read_rows(jsonl(tmp_path, *rows))
    ]


def test_rows_are_read_one_at_a_time(tmp_path: Path) -> None:
    with (tmp_path / "set.jsonl").open("wb") as file:
        for number in range(80_000):
            file.write(orjson.dumps({**WORD, "id": f"w{number}"}) + b"\n")
    rows = read_rows(tmp_path / "set.jsonl")
    tracemalloc.start()
    try:
        assert sum(1 for _ in islice(rows, 40_000)) == 40_000  # the JSON parser's cache of short texts is full now
        before, _ = tracemalloc.get_traced_memory()
        assert sum(1 for _ in rows) == 40_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 200_000, "5 bytes a row"


def test_odd_images_make_good_rows(bad_images: BadImages) -> None:
    rows = list(read_rows(bad_images.folder, "object_detection"))
    there = {
        name
        for name in bad_images.expected
        if os.path.lexists(os.fsencode(bad_images.folder) + b"/" + name.encode().replace(b"\0", b"?"))
    }
    assert {row.id for row in rows} == there - {"folder.png"}
    assert not any(row.problems for row in rows)
