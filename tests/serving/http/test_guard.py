"""The guard alone, around an application that says what it was asked: nothing passes that should not."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from serving.http.guard import FinishedRequest, Guard, Rules

KEY = "k" * 24
RULES = Rules(body_bytes=1000, receive_seconds=0.2)
JSON = (b"content-type", b"application/json")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and answers with its length."""
    size = 0
    more = True
    while more and scope["method"] == "POST":
        message = await receive()
        size = size + len(message["body"])
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": str(size).encode()})


def ask(
    rules: Rules = RULES,
    *headers: tuple[bytes, bytes],
    method: str = "GET",
    path: str = "/agents",
    host: bytes | None = b"localhost:8000",
    chunks: tuple[bytes, ...] = (b"",),
    wait: float = 0.0,
    app: Callable[..., Any] = echo,
    told: list[FinishedRequest] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request."""
    sent: list[Any] = []
    left = list(chunks)

    async def receive() -> Any:
        await asyncio.sleep(wait)
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    own = [] if host is None else [(b"host", host)]
    scope = {"type": "http", "method": method, "path": path, "headers": [*own, *headers]}
    finished: list[FinishedRequest] = [] if told is None else told
    guard = Guard(app, rules, finished.append)
    asyncio.run(guard(scope, receive, send))
    start, *bodies = sent
    assert [one.get("more_body", False) for one in bodies] == [True] * (len(bodies) - 1) + [False]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    assert len(found["x-request-id"]) == 16
    return start["status"], found, b"".join(one.get("body", b"") for one in bodies)


def code(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    """Status and code of an error, which has the one shape."""
    status, headers, body = answer
    error = json.loads(body)["error"]
    assert headers["content-type"] == "application/json"
    assert error["request_id"] == headers["x-request-id"]
    assert error.keys() == {"code", "message", "type", "request_id"}
    return status, error["code"]


@pytest.mark.parametrize("host", [b"localhost", b"localhost:8000", b"127.0.0.1:1", b"[::1]:8000", b"LOCALHOST"])
def test_our_names_are_served(host: bytes) -> None:
    assert ask(host=host)[0] == 200


@pytest.mark.parametrize(
    "host", [None, b"", b"evil.example", b"localhost.evil.example", b"[::1", b"\xff", b"localhost/evil", b"localhost:a"]
)
def test_other_names_are_not(host: bytes | None) -> None:
    assert code(ask(host=host)) == (403, "host_not_allowed")


@pytest.mark.parametrize(
    ("origin", "host", "is_ours"),
    [
        (b"http://localhost:8000", b"localhost:8000", True),
        (b"http://[::1]:8000", b"[::1]:8000", True),
        (b"http://127.0.0.1:80", b"127.0.0.1", True),
        (b"https://localhost", b"localhost:443", True),
        (b"http://LOCALHOST:8000", b"localhost:8000", True),
        (b"http://evil.example", b"localhost:8000", False),
        (b"null", b"localhost:8000", False),
        (b"file://", b"localhost:8000", False),
        (b"", b"localhost:8000", False),
        (b"http://localhost.evil.example", b"localhost:8000", False),
        (b"http://localhost:3000", b"localhost:8000", False),  # another server's page on this machine
        (b"http://127.0.0.1:8000", b"localhost:8000", False),
        (b"http://localhost", b"localhost:8000", False),
        (b"https://localhost", b"localhost:80", False),
        (b"http://localhost:8000/", b"localhost:8000", False),
        (b"http://localhost:8000@localhost:8000", b"localhost:8000", False),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_our_own_page_may_ask(origin: bytes, host: bytes, is_ours: bool, method: str) -> None:
    answer = ask(RULES, (b"origin", origin), JSON, host=host, method=method)
    assert answer[0] == 200 if is_ours else code(answer) == (403, "foreign_origin")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"Bearer " + KEY.encode(), 200),
        (b"bearer " + KEY.encode(), 200),
        (b"Bearer " + KEY.encode()[:-1], 401),
        (b"Bearer " + KEY.encode() + b"x", 401),
        (b"Basic " + KEY.encode(), 401),
        (KEY.encode(), 401),
        (b"Bearer \xc3\xa9", 401),
        (b"", 401),
    ],
)
def test_a_key_that_is_set_is_needed(given: bytes, expected: int) -> None:
    keyed = replace(RULES, key=KEY)
    answer = ask(keyed, (b"authorization", given))
    assert answer[0] == expected
    if expected == 401:
        assert code(answer) == (401, "unauthorized")
        assert answer[1]["www-authenticate"] == "Bearer"
        assert KEY.encode() not in answer[2]


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/health", 200),
        ("HEAD", "/", 200),
        ("GET", "/docs", 200),
        ("GET", "/static/app.js", 200),
        ("GET", "/ready", 401),
        ("GET", "/metrics", 401),
        ("GET", "/openapi.json", 401),
        ("GET", "//health", 401),
        ("GET", "/static", 401),
        ("DELETE", "/health", 401),
    ],
)
def test_only_what_holds_no_data_is_open(method: str, path: str, expected: int) -> None:
    assert ask(replace(RULES, key=KEY), method=method, path=path)[0] == expected


@pytest.mark.parametrize("chunks", [(b"x" * 1001,), (b"x" * 600, b"x" * 401)])
def test_bytes_are_counted_as_they_arrive(chunks: tuple[bytes, ...]) -> None:
    answer = ask(RULES, JSON, method="POST", chunks=chunks)
    assert code(answer) == (413, "too_large")
    assert answer[1]["connection"] == "close"
    assert ask(RULES, JSON, method="POST", chunks=(b"x" * 500, b"x" * 500))[2] == b"1000"


def test_what_says_that_it_is_too_large_is_refused_before_it_has_come() -> None:
    left = []

    async def never(scope: Any, receive: Any, send: Any) -> None:
        left.append(await receive())

    chunks = (b"x" * 500, b"x" * 500, b"x")
    answer = ask(RULES, JSON, (b"content-length", b"1001"), method="POST", chunks=chunks, app=never)
    assert code(answer) == (413, "too_large")
    assert not left


def test_a_slow_sender_is_not_waited_for() -> None:
    assert code(ask(RULES, JSON, method="POST", chunks=(b"x",) * 50, wait=0.02)) == (408, "too_slow")


def test_who_is_not_waited_for_at_the_end_is_told_so() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        scope = {"type": "http", "method": "POST", "path": "/agents", "headers": [(b"host", b"localhost"), JSON]}
        asked = asyncio.create_task(Guard(echo, replace(RULES, receive_seconds=60))(scope, receive, send))
        await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(main())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]["code"] == "shutting_down"


def test_what_is_told_of_a_request_holds_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        await echo(scope, receive, send)
        raise ValueError("a secret of the stimulus")

    told: list[FinishedRequest] = []
    ask(RULES, JSON, method="POST", chunks=(b"a secret",), app=fails, told=told)
    [seen] = told
    assert (seen.method, seen.status) == ("POST", 200)
    [logged] = caplog.records
    assert "ValueError (test_guard.py:" in str(logged.__dict__["about"])
    assert "secret" not in str(logged.__dict__) + repr(seen)
