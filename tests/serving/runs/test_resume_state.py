"""Which answers a run has: compared with a plain dictionary."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import InputError
from serving.runs.checking import id_key
from serving.runs.resume_state import STATUS, Done, Places, compact

LINES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.sampled_from(sorted(STATUS))), max_size=40)


def write(path: Path, lines: list[tuple[int, int, str]]) -> None:
    made = {"provenance": {"digest": "d"}}
    rows = [{"stimulus": f"s{number}", "sample": sample, "status": status, **made} for number, sample, status in lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@given(LINES)
@settings(deadline=None)
def test_the_last_line_of_a_key_counts(lines: list[tuple[int, int, str]]) -> None:
    places = Places(np.array([id_key(f"s{number}") for number in range(6)], dtype=np.uint64))  # s6 and s7 are unknown
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.jsonl"
        write(path, lines)
        done = Done.read(path, places, 2, "d")  # sample 2 is not asked for
        expected = {(number, sample): status for number, sample, status in lines}
        for number in range(6):
            for sample in range(2):
                status = expected.get((number, sample))
                assert done.state[number, sample] == (STATUS[status] if status else 0)
        asked = [(number, sample) for number, sample, _ in lines if number < 6 and sample < 2]
        assert done.duplicates == (len(set(asked)) != len(asked))
        unknown = [line for line in lines if line[0] >= 6 or line[1] >= 2]
        kept_known = {key: status for key, status in expected.items() if key[0] < 6 and key[1] < 2}
        assert compact(path, places, 2) == len(lines) - len(unknown) - len(kept_known)
        kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(int(row["stimulus"][1:]), row["sample"]): row["status"] for row in kept} == expected
    assert len(kept) == len(unknown) + len(kept_known)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, [(0, 0, "ok")])
    with path.open("a") as file:
        file.write('{"stimulus": "s1"}\n')
    with pytest.raises(InputError, match=r"records.jsonl:2 is not a record"):
        Done.read(path, Places(np.array([id_key("s0")], dtype=np.uint64)), 1, "d")


def test_records_of_other_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, [(0, 0, "ok")])
    with pytest.raises(InputError, match=r"records.jsonl:1 was made with other settings"):
        Done.read(path, Places(np.array([id_key("s0")], dtype=np.uint64)), 1, "e")
