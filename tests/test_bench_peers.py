"""scripts/bench_peers.py: what becomes of its figures, and every peer that can run here, small."""

import json
import os
from pathlib import Path
from typing import Any

import bench_peers
import pytest
from peers import noop_http, noop_stimuli
from peers.measuring import Figures, Measured, NotMeasured, Side, Work, WrongAnswer, by_turns, rows_of


def test_sides_take_turns_and_one_that_stops_has_no_further_turn(tmp_path: Path) -> None:
    turns: list[str] = []

    def side(name: str, outcome: Exception | None = None) -> Side:
        def run(place: Path) -> dict[str, float]:
            turns.append(name)
            if outcome is not None:
                raise outcome
            return {"rate": {"a": 6.0, "b": 2.0}[name] + len(turns)}

        return Side(name, name, run)

    sides = [side("a"), side("b"), side("absent", NotMeasured("not installed")), side("liar", WrongAnswer("3, not 2"))]
    work = Work("work", sides, [("rate", "a", name) for name in ("b", "absent", "liar")])
    measured = by_turns(work, 3, tmp_path, lambda line: None)
    assert turns == ["a", "b", "absent", "liar", "a", "b", "a", "b"]
    assert measured.reasons == {"absent": "not installed"}
    assert measured.wrong == {"liar": "3, not 2"}
    assert [*tmp_path.iterdir()] == []


def test_a_side_that_fails_later_keeps_its_turns(tmp_path: Path) -> None:
    outcomes = iter((2.0, None, 8.0))

    def flaky(place: Path) -> dict[str, float]:
        rate = next(outcomes)
        if rate is None:
            raise NotMeasured("Ray does not start")
        return {"rate": rate}

    work = Work("work", [Side("a", "a", lambda place: {"rate": 4.0}), Side("b", "b", flaky)], [("rate", "a", "b")])
    [row] = rows_of(work, by_turns(work, 3, tmp_path, lambda line: None))
    assert row["turns"] == 2
    assert row["ratio"] == {"middle": 1.25, "least": 0.5, "most": 2.0}


def test_what_was_measured_before_a_stop_counts(tmp_path: Path) -> None:
    rates = iter((4.0, 2.0, 8.0))

    def run(place: Path) -> dict[str, float]:
        rate = next(rates, None)
        if rate is None:
            raise KeyboardInterrupt
        return {"rate": rate}

    work = Work("work", [Side("a", "a", run), Side("b", "b", run)], [("rate", "a", "b")])
    measured = by_turns(work, 3, tmp_path, lambda line: None)
    assert measured.is_stopped
    [row] = rows_of(work, measured)
    assert row["ratio"] == {"middle": 2.0, "least": 2.0, "most": 2.0}


def test_a_ratio_is_that_of_each_turn() -> None:
    """The middles' ratio would be 2. The fourth turn of one side has no other beside it."""
    ours: dict[int, Figures] = {turn: {"rate": rate} for turn, rate in enumerate((10.0, 40.0, 20.0, 7.0))}
    peers: dict[int, Figures] = {turn: {"rate": rate} for turn, rate in enumerate((10.0, 10.0, 2.0))}
    work = Work("work", [], [("rate", "ours", "peer"), ("rate", "ours", "absent")])
    [row, absent] = rows_of(work, Measured({"ours": ours, "peer": peers}, {"absent": "not installed"}))
    assert row["ours"] == {"middle": 20.0, "least": 10.0, "most": 40.0}
    assert row["ratio"] == {"middle": 4.0, "least": 1.0, "most": 10.0}
    assert "ratio" not in absent
    assert absent["not_measured"] == "not installed"


RECORD = b'{"run":"r","stimulus":"w1","seed":5,"answer":{"word":"5"},"created":"2026-01-01T00:00:00.000Z"}'


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RECORD.replace(b'"r"', b'"q"').replace(b"2026", b"2027"), None),
        (RECORD.replace(b'"seed":5', b'"seed":6'), "seed is 6"),
        (RECORD.replace(b'"seed":5,', b""), "the fields are"),
        (RECORD.replace(b',"', b"," + b" " * 30 + b'"'), "bytes"),
    ],
)
def test_a_peers_answer_is_the_record_in_the_same_bytes(answer: bytes, why: str | None) -> None:
    if why is None:
        noop_http.compare(answer, RECORD)
    else:
        with pytest.raises(WrongAnswer, match=why):
            noop_http.compare(answer, RECORD)


def test_rates_by_the_records_own_times_leave_the_warm_up_out(tmp_path: Path) -> None:
    """The first two of twenty come in ten seconds, the other eighteen one a second."""
    seconds = [0, 10, *range(20, 38)]
    path = tmp_path / "records.jsonl"
    rows = [{"created": f"2026-01-01T00:00:{second:02d}.000Z"} for second in reversed(seconds)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rates = noop_stimuli.rates(path, 20, 40.0)
    assert rates[noop_stimuli.OWN_TIMES] == pytest.approx(1.0)
    assert rates[noop_stimuli.WHOLE] == pytest.approx(0.5)
    with pytest.raises(WrongAnswer, match="20 records of 21"):
        noop_stimuli.rates(path, 21, 40.0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_peer_that_can_run_here_gives_the_same_answers(tmp_path: Path) -> None:
    """``TURINGLIKE_PEERS`` names a folder of environments; without it the peers of this environment alone run."""
    out = tmp_path / "peers.json"
    call = ["--repeats", "1", "--stimuli", "2000", "--seconds", "1", "--connections", "8", "--words", "4", "--talks"]
    call += ["2", "--pictures", "20", "--large-pictures", "0", "--out", str(out)]
    if folder := os.environ.get("TURINGLIKE_PEERS"):
        call += ["--environments", folder]
    assert bench_peers.main(call) == 0
    rows: list[dict[str, Any]] = json.loads(out.read_text())["rows"]
    assert [row for row in rows if "wrong" in row] == []
    measured = {row["beside"] for row in rows if "ratio" in row}
    assert {"FastAPI", "Ray Data", "plain loop"} <= measured
    assert all(row["ratio"]["middle"] > 0 for row in rows if "ratio" in row)
