"""Reading run folders: against a plain dict, with files cut anywhere, damaged, or of another version."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import InputError
from serving.exchange.exporting.command import export_run
from serving.runs.run import Damage, Run
from serving.runs.status import status
from serving.runs.stimulus_lookup import StimulusLookup
from serving.sets.kinds import is_asked
from serving.viewer.report import write_report
from tests.helpers.run_folders import agent_entry, attempt, line, record, stimulus, write_run

RECORDS = st.lists(
    st.builds(
        lambda name, task, agent, sample, raw: record(name, task, agent, sample=sample, raw=raw),
        st.sampled_from(["a", "b", "é", '"', "\\", "a\nb"]),
        st.sampled_from(["color_estimation", "word_association"]),
        st.sampled_from(["mmcq", "human:05", "human:ü"]),
        st.integers(0, 2),
        st.integers(0, 9),
    ),
    max_size=12,
)


def _last_of_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last: dict[Any, dict[str, Any]] = {}
    for row in rows:
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
    whole = b"".join(json.dumps(row).encode() + b"\n" if row["sample"] else line(row) for row in rows)
    cut = data.draw(st.integers(0, len(whole)))
    (place / "records" / "mmcq.jsonl").write_bytes(whole[:cut])
    complete = rows[: whole[:cut].count(b"\n")]
    assert list(Run(place).records("mmcq")) == complete
    assert list(Run(place).latest("mmcq")) == _last_of_each(complete)


@pytest.mark.parametrize("end", [b"{half", b"{half\n", line(record())[:-9], line(record())[:-9] + b"\n", b"\xff"])
def test_a_torn_last_line_is_ignored(tmp_path: Path, end: bytes) -> None:
    rows = [record("a"), record("b"), record("a")]
    damage = Damage()
    run = Run(write_run(tmp_path / "run", [], {"mmcq": [*rows, end]}))
    assert list(run.records("mmcq", damage)) == rows
    assert list(run.latest("mmcq", damage)) == _last_of_each(rows)
    assert damage.lines == 0


DAMAGED = [
    b"\n",
    b"\xff\xfe\n",
    b"null\n",
    line(record())[:40] + line(record()),
    line({**record(), "extra": 1}),
    line({**record(), "schema": "turinglike.record/2"}),
    line({**record(), "sample": 2**63}),
    line({**record(), "status": "done"}),
    line({**record(), "answer": "red"}),
    line({**record(), "attempts": [{"verdicts": [{"filter": [], "rejected": True, "found": ""}]}]}),
]


@pytest.mark.parametrize("bad", DAMAGED)
def test_damage_in_the_middle_is_named_or_counted(tmp_path: Path, bad: bytes) -> None:
    before = record("s1")
    after = record("s2", attempts=[attempt("no")])
    run = Run(write_run(tmp_path / "run", [], {"mmcq": [before, bad, after, after]}))
    for read, wanted in ((run.records, [before, after, after]), (run.latest, [before, after])):
        with pytest.raises(InputError, match=r"records/mmcq\.jsonl:2: ") as caught:
            list(read("mmcq"))
        damage = Damage()
        assert list(read("mmcq", damage)) == wanted
        assert (damage.lines, damage.first) == (1, caught.value.problems[0])


def test_a_file_that_grows_or_is_replaced_while_it_is_read_counts_as_it_was(tmp_path: Path) -> None:
    rows = [record(f"s{number % 400}", raw=number) for number in range(500)]
    run = Run(write_run(tmp_path / "run", [], {"mmcq": rows}))
    reading = run.latest("mmcq")
    first = next(reading)
    with run.records_path("mmcq").open("ab") as file:
        file.write(line(record("late", raw="x" * 100)) + b'{"half')
    (tmp_path / "other").write_bytes(line(record()))
    (tmp_path / "other").replace(run.records_path("mmcq"))
    assert [first, *reading] == _last_of_each(rows)


def test_stimuli(tmp_path: Path) -> None:
    rows = [stimulus("a"), {"id": "b", "task": "color_estimation", "surplus": [1]}, stimulus("c", benchmark_id="7")]
    run = Run(write_run(tmp_path / "run", rows, {}))
    assert list(run.stimuli()) == rows
    for name, row in (("a", rows[0]), ("7", rows[2]), ("other", None)):
        assert StimulusLookup(run).get({"task": "color_estimation", "stimulus": name}) == row
    path = run.path / "stimuli.jsonl"
    path.write_bytes(path.read_bytes() + line(stimulus("d")))  # while stimuli are added to the run
    assert len(list(run.stimuli())) == 4
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        list(run.stimuli())


GOOD = line(stimulus("a")) + line(stimulus("b"))


@pytest.mark.parametrize(
    ("content", "number", "message"),
    [
        (GOOD, 2, "the set has 3"),
        (GOOD + line(stimulus("c"))[:-5], 3, "not JSON"),
        (GOOD + b"[1]\n", 3, "not a JSON object"),
    ],
)
def test_damaged_stimuli_are_named_by_every_reader(tmp_path: Path, content: bytes, number: int, message: str) -> None:
    run = write_run(tmp_path / "run", [stimulus(name) for name in "abc"], {"mmcq": [record(name) for name in "abc"]})
    (run / "stimuli.jsonl").write_bytes(content)
    for read in (status, lambda run: write_report([run]), lambda run: export_run(run, "csv", tmp_path / "out.csv")):
        with pytest.raises(InputError, match=rf"stimuli\.jsonl:{number}: .*{message}"):
            read(run)
    assert not (tmp_path / "out.csv").exists()
    assert not (run / "report").exists()


META = {"schema": "turinglike.run/1", "run": "0123456789ab", "seed": 0, "samples": 1, "set": {}, "agents": {}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (orjson.dumps({**META, "schema": "turinglike.run/2"}), "newer version"),
        (orjson.dumps({**META, "schema": 1}), "does not say"),
        (None, r"it has no run\.json"),
    ],
)
def test_a_folder_that_is_not_a_run(tmp_path: Path, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=reason):
        Run(tmp_path)


def test_every_field_of_run_json_that_is_wrong_is_named(tmp_path: Path) -> None:
    agents = {"a": 1, "b": {**agent_entry("color_estimation"), "task": [3], "samples": "2", "digest": None}}
    wrong = {"agents": agents, "samples": True, "seed": "a", "set": {"count": "x", "root": 3}}
    (tmp_path / "run.json").write_bytes(orjson.dumps({**META, **wrong}))
    with pytest.raises(InputError, match="damaged") as caught:
        Run(tmp_path)
    agent = ["agents.a", "agents.b.digest", "agents.b.samples", "agents.b.task.0"]
    others = ["samples", "seed", "set.count", "set.root"]
    assert sorted(str(problem.field) for problem in caught.value.problems) == [*agent, *others]


def test_a_conversation_of_machines_is_asked_of_pairs_and_one_with_a_person_of_agents() -> None:
    agent = {"task": ["conversation", "word_association"]}
    pair = {"task": ["conversation"], "members": {"eliza": {}, "null": {}}}
    kinds = [("conversation", None), ("conversation", "HM"), ("conversation", "HH"), ("word_association", None)]
    assert [is_asked(agent, kind) for kind in kinds] == [False, True, False, True]
    assert [is_asked(pair, kind) for kind in kinds] == [True, False, False, False]
