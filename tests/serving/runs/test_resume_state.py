"""Which answers a run has: compared with a plain dictionary."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_folders import DIGEST, failed, line, record

from agents.errors import InputError
from serving.runs.positions import Positions, id_key, task_key
from serving.runs.resume_state import FAILED, STATUS, Maker, ResumeState

STATUSES = [*STATUS, "failed"]
MAKER = Maker("mmcq", ("color_estimation",), DIGEST)
LINES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.sampled_from(STATUSES)), max_size=40)


def key(name: str) -> int:
    return id_key(name) ^ task_key("color_estimation")


def write(path: Path, lines: list[tuple[int, int, str]]) -> None:
    rows = []
    for number, sample, status in lines:
        one = failed(f"s{number}") if status == "failed" else record(f"s{number}", status=status)
        rows.append({**one, "sample": sample})
    path.write_bytes(b"".join(map(line, rows)))


@given(LINES)
def test_the_last_line_of_a_key_counts(lines: list[tuple[int, int, str]]) -> None:
    positions = Positions([key(f"s{number}") for number in range(6)])  # s6 and s7 are not of the set
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.jsonl"
        write(path, lines)
        found = ResumeState.read(path, positions, 2, MAKER, 3)  # sample 2 is not wanted
        expected = {(number, sample): status for number, sample, status in lines}
        for number in range(6):
            for sample in range(2):
                status = expected.get((number, sample))
                assert found.state[number, sample] == ({**STATUS, "failed": FAILED}[status] if status else 0)
                assert found.code(found.state[number, sample]) == ("bad_image" if status == "failed" else "")
        known = {key: status for key, status in expected.items() if key[0] < 6 and key[1] < 3}
        others = [one for one in lines if one[0] >= 6]
        wanted = [(*key, known[key]) for key in sorted(known)] + others
        assert found.lines.in_order() == (wanted == lines)
        found.lines.tidy(path)
        kept = [json.loads(text) for text in path.read_text().splitlines()]
        again = ResumeState.read(path, positions, 3, MAKER)
    assert [(int(row["stimulus"][1:]), row["sample"], row["status"]) for row in kept] == wanted
    assert again.lines.in_order()


def test_keys_of_ids_are_those_of_old_indexes() -> None:
    """``stimuli.index`` of an old run holds these keys: the first 64 bits of SHA-256."""
    assert id_key("") == 0xE3B0C44298FC1C14


def test_a_file_with_other_lines_than_were_noted_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, [(1, 0, "ok"), (0, 0, "ok")])
    found = ResumeState.read(path, Positions([key("s0"), key("s1")]), 1, MAKER)
    found.lines.add(5, 0)
    before = path.read_bytes()
    found.lines.tidy(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("edited", "digest", "reason"),
    [
        (b'{"stimulus": "s1"}\n', DIGEST, "records.jsonl:2: not a record"),
        (b"oops\n", DIGEST, "records.jsonl:2: not JSON"),
        (b"", "e" * 64, "records.jsonl:1 was made with other settings"),
    ],
)
def test_a_file_edited_by_hand_is_refused_with_its_line(
    tmp_path: Path, edited: bytes, digest: str, reason: str
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line(record("s0")) + edited + line(record("s2")))
    with pytest.raises(InputError, match=reason):
        ResumeState.read(path, Positions([key("s0")]), 1, Maker("mmcq", ("color_estimation",), digest))


def test_each_code_of_a_failure_is_known_and_very_many_are_one(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    names = [f"s{number}" for number in range(300)]
    path.write_bytes(b"".join(line(failed(name, code=f"code {name}")) for name in names))
    found = ResumeState.read(path, Positions([key(name) for name in names]), 1, MAKER)
    codes = [found.code(value) for value in found.state[:, 0].tolist()]
    assert codes == [f"code {name}" for name in names[:252]] + [""] * 48
    assert found.counts() == {"ok": 0, "rejected": 0, "failed": 300}
