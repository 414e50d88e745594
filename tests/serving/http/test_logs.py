"""What a server logs."""

import json
import logging
import re
from datetime import UTC, datetime

import pytest

from serving.http.guard import FinishedRequest
from serving.http.monitoring import ServerLog


def say_all(log: ServerLog) -> None:
    log.start()
    log.progress("loading null")
    log.say("serving null")
    for route, status in (("/health", 200), ("/answers", 200), (None, 404), ("/answers", 500)):
        log.request(FinishedRequest("1f", "POST\x1b", route, status, 0.0123))
    about = {"agent": "null", "failed": "no\nsuch\x1b[2J file"}
    logging.getLogger("turinglike.http").error("agent", extra={"about": about})
    logging.getLogger("turinglike.scheduling").debug("null: workers: %s", "1 on here")
    logging.getLogger("uvicorn.error").error("a sentence")


def test_each_request_and_fault_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(ServerLog(verbose=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["loading null", "serving null"]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d .*", line) for line in lines[2:])
    assert [line[9:] for line in lines[2:]] == [
        "200 POST\\x1b /answers in 12 ms [1f]",
        "404 POST\\x1b - in 12 ms [1f]",
        "500 POST\\x1b /answers in 12 ms [1f]",
        "error: agent: null, failed: no\\nsuch\\x1b[2J file",
        "null: workers: 1 on here",
        "a sentence",
    ]


def test_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(ServerLog(verbose=True, form="json"))
    text = capsys.readouterr().err
    assert text.isascii()
    assert "\x1b" not in text
    events = [json.loads(line) for line in text.splitlines()]
    assert all(datetime.fromisoformat(event["time"]).tzinfo == UTC for event in events)
    assert [(event["event"], event["level"]) for event in events] == [
        *[("server", "info")] * 2,
        *[("request", "info")] * 3,
        ("agent", "error"),
        ("scheduling", "debug"),
        ("error", "error"),
    ]
    assert events[1]["message"] == "serving null"
    del events[3]["time"]
    assert events[3] == {
        "level": "info",
        "event": "request",
        "request_id": "1f",
        "method": "POST\x1b",
        "route": None,
        "status": 404,
        "ms": 12.3,
    }
    assert events[5].items() >= {"agent": "null", "failed": "no\nsuch\x1b[2J file"}.items()
    assert events[6]["message"] == "null: workers: 1 on here"


def test_quiet_leaves_errors_and_where_it_listens(capsys: pytest.CaptureFixture[str]) -> None:
    say_all(ServerLog(quiet=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.rsplit(" ", 1)[-1] for line in lines] == ["null", "[1f]", "file", "sentence"]
    assert "500 POST" in lines[1]
