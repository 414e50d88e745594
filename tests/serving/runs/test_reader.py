"""Reading run folders: against a plain dict, with files cut anywhere, damaged, or of another version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import agent_entry, attempt, line, record, stimulus, write_run

from agents.errors import InputError
from serving.export.registry import export
from serving.runs.reader import Damage, RunFolder
from serving.runs.status import status
from serving.runs.stimulus_lookup import Lookup
from serving.web.report import write_report

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
RECORDS = st.lists(
    st.builds(
        lambda name, task, agent, sample, raw: record(name, task, agent, sample=sample, raw=raw),
        st.one_of(st.sampled_from(["a", "b", "é", '"', "\\", "a\nb"]), NAMES),
        st.sampled_from(["color_estimation", "word_association"]),
        st.sampled_from(["mmcq", "human:05", "human:ü"]),
        st.integers(0, 2),
        st.integers(0, 9),
    ),
    max_size=12,
)


def _naive(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last record of each key, in the order of those last records."""
    last: dict[Any, dict[str, Any]] = {}
    for row in lines:
        key = (row["task"], row["agent"], row["stimulus"], row["sample"])
        last.pop(key, None)
        last[key] = row
    return list(last.values())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run", [], {"mmcq": []})


@settings(max_examples=60)
@given(RECORDS, st.data())
def test_the_last_record_of_a_key_counts_wherever_the_file_is_cut(place: Path, rows: Any, data: st.DataObject) -> None:
    rows = [{**row, "raw": number} for number, row in enumerate(rows)]
    # Another writer may escape what ours does not, and put spaces between: the same keys all the same.
    as_others = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))

    lines = [
        json.dumps(row).encode() + b"\n" if other else line(row) for row, other in zip(rows, as_others, strict=True)
    ]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    path = place / "records" / "mmcq.jsonl"
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    folder = RunFolder(place)
    assert list(folder.records("mmcq")) == rows[:complete]
    assert list(folder.latest("mmcq")) == _naive(rows[:complete])


@settings(max_examples=20)
@given(RECORDS.filter(bool), st.binary(max_size=30))
def test_a_last_line_of_rubbish_is_ignored_with_or_without_a_newline(place: Path, rows: Any, rubbish: bytes) -> None:
    path = place / "records" / "mmcq.jsonl"
    rubbish = b"{" + rubbish.replace(b"\n", b" ")  # no JSON begins so and ends without a brace
    for end in (rubbish.rstrip(b"}"), rubbish.rstrip(b"}") + b"\n", line(record())[:-9], line(record())[:-9] + b"\n"):
        path.write_bytes(b"".join(map(line, rows)) + end)
        damage = Damage()
        assert list(RunFolder(place).records("mmcq", damage)) == rows
        assert list(RunFolder(place).latest("mmcq", damage)) == _naive(rows)
        assert damage.lines == 0


DAMAGED = [
    b"\n",
    b"\xff\xfe\n",
    b"null\n",
    b"\0" * 50 + b"\n",
    line(record())[:40] + line(record()),
    line({**record(), "extra": 1}),
    line({key: value for key, value in record().items() if key != "created"}),
    line({**record(), "schema": "turinglike.record/2"}),
    line({**record(), "sample": 0.0}),
    line({**record(), "sample": 2**63}),
    line({**record(), "stimulus": None}),
    line({**record(), "status": "done"}),
    line({**record(), "answer": "red"}),
    line({**record(), "attempts": [{"verdicts": [{"filter": [], "rejected": True, "found": ""}]}]}),
    line({**record(), "attempts": None}),
]


@pytest.mark.parametrize("bad", DAMAGED)
def test_damage_in_the_middle_is_named_or_counted(tmp_path: Path, bad: bytes) -> None:
    before, after = record("s1"), record("s2", attempts=[attempt("no")])
    folder = RunFolder(write_run(tmp_path / "run", [], {"mmcq": [before, bad, after, after]}))
    for read, wanted in ((folder.records, [before, after, after]), (folder.latest, [before, after])):
        with pytest.raises(InputError, match=r"mmcq\.jsonl:2: ") as caught:
            list(read("mmcq"))
        assert caught.value.problems[0].line == 2
        assert caught.value.problems[0].where.endswith("records/mmcq.jsonl")
        damage = Damage()
        assert list(read("mmcq", damage)) == wanted
        assert damage.lines == 1
        assert damage.first == caught.value.problems[0]


def test_a_file_that_grows_while_it_is_read_counts_as_it_was(tmp_path: Path) -> None:
    rows = [record(f"s{number}") for number in range(500)]
    folder = RunFolder(write_run(tmp_path / "run", [], {"mmcq": rows}))
    for read in (folder.records, folder.latest):
        reading = read("mmcq")
        found = [next(reading)]
        with folder.records_path("mmcq").open("ab") as file:
            file.write(line(record("late", raw="x" * 100)) + b'{"half')
        assert [*found, *reading] == rows
        folder.records_path("mmcq").write_bytes(b"".join(map(line, rows)))


def test_a_file_that_is_rewritten_while_it_is_read_stays_the_old_one(tmp_path: Path) -> None:
    rows = [record(f"s{number % 400}", raw=number) for number in range(500)]
    folder = RunFolder(write_run(tmp_path / "run", [], {"mmcq": rows}))
    reading = folder.latest("mmcq")
    found = [next(reading)]
    other = tmp_path / "other"
    other.write_bytes(line(record()))
    other.replace(folder.records_path("mmcq"))
    assert found + list(reading) == _naive(rows)


def test_agents_and_imports(tmp_path: Path) -> None:
    agents = {"b": agent_entry("color_estimation"), "a": agent_entry("conversation"), "none": agent_entry()}
    records: dict[str, list[Any]] = {name: [] for name in ("a", "b", "a~b", "humans", "published")}
    path = write_run(tmp_path / "run", [], records, agents)
    (path / "records" / ".a.jsonl.tmp.jsonl").write_bytes(b"")
    (path / "records" / "a.jsonl.old").write_bytes(b"")
    folder = RunFolder(path)
    assert folder.agents() == ["b", "a", "a~b"]
    assert folder.imports() == ["humans", "published"]
    assert folder.image_path("images/x.jpg") == tmp_path / "images" / "x.jpg"
    assert folder.image_path("/abs/x.jpg") == Path("/abs/x.jpg")
    with pytest.raises(InputError, match="is missing"):
        list(folder.records("nobody"))


def test_stimuli(tmp_path: Path) -> None:
    rows = [stimulus("a"), {"id": "b", "task": "color_estimation", "surplus": [1]}, stimulus("c")]
    folder = RunFolder(write_run(tmp_path / "run", rows, {}))
    assert list(folder.stimuli()) == list(enumerate(rows))
    path = folder.path / "stimuli.jsonl"
    path.write_bytes(path.read_bytes() + line(stimulus("d")))  # while stimuli are added to the run
    assert len(list(folder.stimuli())) == 4
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        list(folder.stimuli())


GOOD = line(stimulus("a")) + line(stimulus("b"))
BAD_STIMULI = {
    "empty": (b"", 1, "the set has 3"),
    "cut at a line": (GOOD, 2, "the set has 3"),
    "cut in a line": (GOOD + line(stimulus("c"))[:-5], 3, "not JSON"),
    "no object": (GOOD + b"[1]\n", 3, "not a JSON object"),
}


@pytest.mark.parametrize("name", BAD_STIMULI)
def test_damaged_stimuli_are_named_by_every_reader(tmp_path: Path, name: str) -> None:
    content, number, message = BAD_STIMULI[name]
    run = write_run(tmp_path / "run", [stimulus(one) for one in "abc"], {"mmcq": [record(one) for one in "abc"]})
    (run / "stimuli.jsonl").write_bytes(content)
    place = rf"stimuli\.jsonl:{number}: .*{message}"
    for read in (status, lambda run: write_report([run]), lambda run: export(run, "csv", tmp_path / "out.csv")):
        with pytest.raises(InputError, match=place):
            read(run)
    assert not (tmp_path / "out.csv").exists()
    assert not (run / "report").exists()


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(NAMES, st.sampled_from(["color_estimation", "word_association"]), st.none() | NAMES)))
def test_lookup_is_a_dict(place: Path, rows: list[tuple[str, str, str | None]]) -> None:
    stimuli = [
        {"id": name, "task": task, "at": number, **({} if public is None else {"benchmark_id": public})}
        for number, (name, task, public) in enumerate(rows)
    ]
    folder = RunFolder(write_run(place, stimuli, {}))
    for field in ("id", "benchmark_id"):
        wanted: dict[Any, Any] = {}
        for row in stimuli:
            if field in row:
                wanted.setdefault((row["task"], row[field]), row)
        with Lookup(folder, field) as lookup:
            for task in ("color_estimation", "word_association", "other"):
                for name in {row["id"] for row in stimuli} | {row.get("benchmark_id", "x") for row in stimuli}:
                    assert lookup.get(task, name) == wanted.get((task, name))


META = {"schema": "turinglike.run/1", "run": "0123456789ab", "seed": 0, "samples": 1, "set": {}, "agents": {}}
ENTRY = agent_entry("color_estimation")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (b"[]", "does not say"),
        (orjson.dumps({**META, "schema": "turinglike.run/2"}), "newer version"),
        (orjson.dumps({**META, "schema": 1}), "does not say"),
    ],
)
def test_a_folder_that_is_not_a_run(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=reason):
        RunFolder(tmp_path)


def test_every_field_of_run_json_that_is_wrong_is_named(tmp_path: Path) -> None:
    agents = {"a": 1, "b": {**ENTRY, "task": [3], "samples": "2", "digest": None}}
    wrong = {"agents": agents, "samples": True, "seed": "a", "set": {"count": "x", "root": 3}}
    (tmp_path / "run.json").write_bytes(orjson.dumps({**META, **wrong}))
    with pytest.raises(InputError, match="damaged") as caught:
        RunFolder(tmp_path)
    agent = ["agents.a", "agents.b.digest", "agents.b.samples", "agents.b.task.0"]
    assert sorted(str(one.field) for one in caught.value.problems) == [
        *agent,
        "samples",
        "seed",
        "set.count",
        "set.root",
    ]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        RunFolder(tmp_path / "none")
    with pytest.raises(InputError, match=r"it has no run\.json"):
        RunFolder(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not a run folder"):
        RunFolder(tmp_path / "file")
