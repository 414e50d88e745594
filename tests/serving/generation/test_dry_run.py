"""``generate --dry-run``: what it says against plain arithmetic, and that it leaves everything as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from serving.cli import main
from serving.generation.measured_speed import MeasuredSpeed, Needs, of_repeats, read_measured, speed_for, total
from serving.runs.estimates import Estimate
from tests.helpers import in_process


@pytest.fixture(autouse=True)
def _without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)


def words(path: Path, count: int) -> Path:
    rows = [{"id": f"w{number:03}", "task": "word_association", "cue": f"cue{number}"} for number in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(source: Path, out: Path, *more: str) -> int:
    return main(["generate", str(source), "--agents", "null", "--out", str(out), "--batch-size", "4", *more])


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_nothing_is_made_and_what_measures_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 30)
    out = tmp_path / "run"
    assert run(source, out, "--dry-run", "--samples", "2") == 0
    told = capsys.readouterr().out
    assert told.startswith("null: 60 of 60 answers missing; how long they take is not measured yet")
    assert f"turinglike bench {source} --agents null" in told
    assert not out.exists()


def test_a_run_that_has_begun_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 200)
    out = tmp_path / "run"
    assert run(source, out, "--limit", "120", "--here") == 0
    with (out / "records" / "null.jsonl").open("ab") as file:
        file.write(b'{"torn')
    before = contents(out)
    capsys.readouterr()
    assert run(source, out, "--dry-run", "--price-hour", "3600") == 0
    told = capsys.readouterr().out
    assert told.startswith("null: 80 of 200 answers missing: ")
    assert "GB of records" in told
    assert "a cost of " in told
    assert told.endswith("; by the pace of the run's records so far\n")
    assert contents(out) == before
    assert run(source, out, "--dry-run", "--limit", "120") == 0
    assert capsys.readouterr().out == "null: 0 of 120 answers missing\n"


def test_the_set_and_the_run_are_checked_as_always(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 10)
    out = tmp_path / "run"
    assert run(source, out) == 0
    capsys.readouterr()
    assert run(source, out, "--dry-run", "--seed", "5") == 2
    error = capsys.readouterr().err
    assert f"{out / 'run.json'}: seed: the run has 0, not 5" in error
    assert f"{out} was made from something else" in error
    source.write_text('{"id": "a"}\n')
    assert run(source, tmp_path / "new", "--dry-run") == 2
    assert "nothing was started" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert run(source, tmp_path / "new", "--price-hour", "1") == 2
    assert "give --dry-run, too" in capsys.readouterr().err


def bench_json(path: Path, **scaled: Any) -> Path:
    repeats = [
        {"rate_s": rate, "record_bytes": 500.0, "tokens_s": 20 * rate} for rate in scaled.pop("rates", (4.0, 5.0, 6.25))
    ]
    found = {"replicas": 2, "devices": 2, "repeats": repeats, **scaled}
    other = {"replicas": 1, "devices": 1, "repeats": repeats[:1]}
    path.write_text(json.dumps({"runs": [{"agent": "null", "scaling": [other, found]}]}))
    return path


def test_a_measured_speed_says_what_the_answers_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = bench_json(tmp_path / "bench.json")
    source = words(tmp_path / "set.jsonl", 90)
    prices = ("--price-hour", "100", "--price-token", "0.5")
    assert run(source, tmp_path / "run", "--dry-run", "--measured", str(measured), *prices) == 0
    told = capsys.readouterr().out
    # 90 answers at 5 in a second take 18 s, on two GPUs 0.01 GPU-hours; 20 tokens each at 0.5, and 100 for an hour.
    assert told.startswith("null: 90 of 90 answers missing: 18 s (")
    assert ", 0.01 (" in told
    assert " GPU-hours, 4.5e-05 (" in told
    assert "a cost of 901 (" in told
    assert told.endswith("as measured with 2 workers\n")
    assert run(source, tmp_path / "run", "--dry-run", "--measured", str(measured), "--replicas", "1") == 0
    assert ": 22 s, 0.00625 GPU-hours, 4.5e-05 GB of records; as measured with 1 worker\n" in capsys.readouterr().out


def test_needs_follow_from_the_speed() -> None:
    speed = MeasuredSpeed(4, 0, Estimate(2.0, 1.0, 4.0), Estimate(1e6), None)
    needs = Needs.of(7200, speed)
    assert needs.seconds == Estimate(3600.0, 1800.0, 7200.0)
    assert needs.cost(3.0, None) == Estimate(3.0, 1.5, 6.0)  # of the machine
    assert needs.cost(3.0, 1.0) is None
    assert needs.cost(None, None) is None
    assert needs.sentence(None, None) == "1 h 0 min (30 min 0 s to 2 h 0 min), 7.2 GB of records"
    assert needs.sentence(None, 1.0).endswith("since no tokens were counted")
    assert total([Estimate(1.0, 0.5, 2.0), Estimate(1.0)]) == Estimate(2.0)
    assert speed_for([], 1) is None
    eight = MeasuredSpeed(8, 0, Estimate(3.0), Estimate(1e6), None)
    assert speed_for([speed, eight], None) is eight
    assert speed_for([speed, eight], 5) is speed


def test_repeats_say_what_a_new_run_will_do() -> None:
    """The prediction interval of three normal values (Hahn 1969), of logarithms: t(0.95, 2) s sqrt(4/3)."""
    found = of_repeats([4.0, 5.0, 6.25])
    assert found.value == pytest.approx(5.0)
    assert found.high == pytest.approx(5.0 * 1.25 ** (2.92 * (4 / 3) ** 0.5), rel=0.01)
    alone = of_repeats([3.0])
    assert alone.value == pytest.approx(3.0)
    assert alone.low is None


def test_another_file_is_refused(tmp_path: Path) -> None:
    for content in ("", "[]", '{"runs": [{"agent": "a", "scaling": [{}]}]}', '{"agents": []}'):
        (tmp_path / "bench.json").write_text(content)
        with pytest.raises(InputError, match=r"not a bench\.json"):
            read_measured(tmp_path / "bench.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_measured(tmp_path / "missing.json")


def test_a_number_of_answers_is_foretold_without_a_set_of_that_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the records of a run that is complete: 1,000,000 answers take 5,000 times as long as 200, and as much disk."""
    source = words(tmp_path / "set.jsonl", 200)
    out = tmp_path / "run"
    assert run(source, out, "--here") == 0
    before = contents(out)
    capsys.readouterr()
    assert run(source, out, "--dry-run", "--for", "1000000") == 0
    said = capsys.readouterr()
    assert said.out.startswith("null: 1,000,000 answers to stimuli like these: ")
    gigabytes = (out / "records" / "null.jsonl").stat().st_size * 5000 / 1e9
    assert f"{gigabytes:.3g}"[:4] in said.out
    assert said.out.endswith("; by the pace of the run's records so far\n")
    assert f"checking {source}" in said.err
    assert contents(out) == before
    assert run(source, out, "--for", "10") == 2
    assert "--for" in capsys.readouterr().err
