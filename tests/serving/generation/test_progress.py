"""What a run shows while it goes on, on a terminal of a known width and elsewhere, by a clock that the test sets."""

import io
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.ansi import AnsiDecoder

from serving.generation import load_times, progress
from serving.generation.load_times import LoadTimes
from serving.generation.progress import Progress
from serving.runs.estimates import Estimate

NOTHING = LoadTimes({}, Path("absent"))


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(progress, "time", clock := Clock())
    return clock


def last_frame(terminal: Terminal) -> list[str]:
    """The lines since the cursor last went up."""
    frame = terminal.getvalue().rpartition("\x1b[1A\x1b[2K")[2]
    return [line.plain.rstrip() for line in AnsiDecoder().decode(frame)]


@pytest.mark.parametrize(("columns", "rows", "agents"), [(80, 24, 1), (80, 24, 12), (200, 50, 12), (80, 10, 12)])
def test_a_bar_for_each_agent_fits_the_terminal(
    columns: int, rows: int, agents: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COLUMNS": str(columns), "LINES": str(rows), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    names = [f"an-agent-with-a-long-name-{number}" for number in range(agents)]
    counts = {name: Counter[str](ok=500) for name in names}  # from before
    left = {name: lambda: Estimate(9849.0, 9000.0, 10_800.0) for name in names}
    with Progress(lambda: counts, dict.fromkeys(names, 100_000), left, NOTHING) as display:
        for name in names:
            display.loading(name, name)
        display.update()
        assert last_frame(terminal)[0].endswith("loading")
        display.answering(names[0])
        counts[names[0]] += Counter(rejected=10)
        display.update()
        clock.now += 100
        counts[names[0]] += Counter(ok=970, failed=30)
        display.update()
        frame = last_frame(terminal)
        assert max(map(len, frame)) <= min(columns - 2, 120)
        assert len(frame) == min(agents, rows)
        assert "1,510/100,000, 30 failed, 10 rejected, 10/s" in frame[0]
        assert columns == 80 or frame[0].endswith("2 h 44 min (2 h 30 min to 3 h 0 min) left")
        if agents > 1:
            display.stopped(names[1], "the second was stopped")
            display.update()
            assert "the second was stopped\n" in terminal.getvalue()
            assert last_frame(terminal)[1].endswith("stopped")


def test_elsewhere_lines_get_rarer_and_name_only_what_went_on(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("quick", "slow", "stuck", "stopped")}
    left = {
        name: lambda name=name: Estimate(4000.0 - counts[name].total()) if counts[name] else None for name in counts
    }
    with Progress(lambda: counts, dict.fromkeys(counts, 4000), left, NOTHING) as display:
        for name in counts:
            display.loading(name, name)
        display.update()
        for name in counts:
            display.answering(name)
        display.stopped("stopped", "it was stopped")
        assert capsys.readouterr().err.splitlines() == [*(f"loading {name}" for name in counts), "it was stopped"]
        for second in range(1, 3601):
            clock.now += 1
            counts["slow"]["ok"] += 1
            counts["quick"]["failed" if second == 7 else "ok"] += 400 * (second <= 10)
            display.update()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "quick: 4,000/4,000, 400 failed, 400/s, done; slow: 10/4,000, 1/s, 1 h 6 min left"
    assert len(lines) < 15
    assert all(line.startswith("slow: ") and "; " not in line for line in lines[1:])


def test_elsewhere_a_long_load_is_told_again(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("quick", "large", "late")}
    with Progress(
        lambda: counts, dict.fromkeys(counts, 100), {name: lambda: None for name in counts}, NOTHING
    ) as display:

        def told(name: str | None, seconds: int) -> list[str]:
            """What is printed when ``name`` is being loaded, and that many seconds later."""
            if name is not None:
                display.loading(name, name)
            clock.now += seconds
            display.update()
            return capsys.readouterr().err.splitlines()

        assert told("quick", 0) == ["loading quick"]
        assert told("large", 11) == ["loading large", "quick: still loading (11 s); large: still loading (11 s)"]
        display.answering("quick")
        assert told(None, 14) == []  # the pauses get longer
        assert told("late", 6) == ["loading late", "large: still loading (31 s)"]
        counts["quick"]["ok"] += 50
        assert told(None, 41) == [
            "quick: 50/100, working; large: still loading (1 min 12 s); late: still loading (47 s)"
        ]
        display.stopped("late", "it cannot be loaded")
        display.answering("large")
        assert told(None, 3600) == ["it cannot be loaded"]


def test_a_load_is_told_with_what_it_took_the_last_time(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load_times, "LEAST", 5.0)
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("small", "large")}
    file = tmp_path / "cache" / "loading.json"

    def run(small: str) -> list[str]:
        """What is printed while both load, ``large`` in 90 s, and ``small``, of which this is the digest, in 4 s."""
        loads = LoadTimes({"small": small, "large": "b"}, file)
        with Progress(lambda: counts, dict.fromkeys(counts, 9), dict.fromkeys(counts, lambda: None), loads) as display:
            for name in counts:
                display.loading(name, name)
            clock.now += 4
            display.answering("small")
            clock.now += 86
            display.update()
            display.answering("large")
        return capsys.readouterr().err.splitlines()

    assert run("a") == ["loading small", "loading large", "large: still loading (1 min 30 s)"]
    told = ["loading small", "loading large, the last time 1 min 30 s"]
    assert run("a") == [*told, "large: still loading (1 min 30 s; the last time 1 min 30 s)"]
    LoadTimes({"small": "c"}, file).note("small", 40.0)
    assert run("c")[0] == "loading small, the last time 40 s"
    file.write_text("{")
    assert run("a")[1] == "loading large"
    file.unlink()
    file.mkdir()  # it cannot be written
    assert run("a")[1] == "loading large"
    assert run("a")[1] == "loading large"


def test_the_latest_loads_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_times, "LEAST", 5.0)
    monkeypatch.setattr(load_times, "MOST", 3)
    loads = LoadTimes({name: name for name in "abcd"}, tmp_path / "loading.json")
    for name in "abca":
        loads.note(name, 7.0)
    loads.note("d", 8.0)
    assert [loads.last(name) for name in "abcd"] == [7.0, None, 7.0, 8.0]
