"""Signs of life of commands that print nothing else for long."""

import threading

import pytest

from serving.cli import main
from serving.commands import command_line
from serving.files import signs_of_life
from serving.files.signs_of_life import THREAD, still


class Pauses(threading.Event):
    """An event that nobody waits for: three pauses are over at once, and then the block is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []
        self.told = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        if len(self.waited) == 3:
            self.told.set()
            return super().wait()
        self.waited.append(timeout or 0)
        return False


class Threading:
    """threading, with one event of ours."""

    Thread = threading.Thread

    def __init__(self, pauses: Pauses) -> None:
        self.Event = lambda: pauses


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    pauses = Pauses()
    monkeypatch.setattr(signs_of_life, "threading", Threading(pauses))
    monkeypatch.setattr(signs_of_life, "FIRST_SIGN", 10.0)
    return pauses


def test_signs_come_after_longer_and_longer_pauses(pauses: Pauses, capsys: pytest.CaptureFixture[str]) -> None:
    with still("computing\x1b"):
        assert pauses.told.wait(60)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["still computing\\x1b"] * 3
    assert pauses.waited == [10.0, 20.0, 40.0]


def test_quiet_and_short_blocks_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with still("computing"):
        pass
    with still("computing", quiet=True):
        assert THREAD not in [thread.name for thread in threading.enumerate()]
    assert THREAD not in [thread.name for thread in threading.enumerate()]
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_signs(pauses: Pauses) -> None:
    with pytest.raises(ValueError, match="wrong"), still("computing"):
        raise ValueError("wrong")
    assert THREAD not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(("command", "doing"), [("status nowhere", "reading the records"), ("schema record", "")])
def test_a_command_says_what_it_does(command: str, doing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def noted(what: str, *, quiet: bool) -> object:
        told.append((what, quiet))
        return still(what, quiet=True)

    monkeypatch.setattr(command_line, "still", noted)
    main(command.split())
    assert told == [(doing, not doing)]
