"""What docs/security.md promises, on each route of OpenAI's interface that is asked something."""

import json
from typing import Any

import pytest

from serving.http.guard import Rules
from tests.helpers import served_here
from tests.helpers.served_here import here

KEY = "k" * 16
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "I like tea."}]},
    "/v1/completions": {"prompt": "I like tea."},
    "/v1/responses": {"input": "I like tea."},
}


def told(route: str, **more: Any) -> dict[str, Any]:
    return {"model": "null", **ASKED[route], **more}


@pytest.mark.parametrize("route", ASKED)
def test_the_rules_of_all_requests_hold(route: str) -> None:
    body = json.dumps(told(route)).encode()
    kind = {"content-type": "application/json"}
    key = {"authorization": f"Bearer {KEY}"}

    async def work(found: served_here.Here) -> None:
        cases: list[tuple[dict[str, str], bytes, int, str]] = [
            ({**kind, **key}, body, 200, ""),
            (kind, body, 401, "unauthorized"),
            ({**key, "content-type": "text/plain"}, body, 415, "unsupported_type"),
            (key, body, 415, "unsupported_type"),
            ({**kind, **key, "host": "evil.example"}, body, 403, "host_not_allowed"),
            ({**kind, **key, "origin": "https://evil.example"}, body, 403, "foreign_origin"),
            ({**kind, **key}, body + b" " * 1000, 413, "too_large"),
            ({**kind, **key}, body[:-1], 400, "bad_json"),
            ({**kind, **key}, b"[" * 990, 400, "bad_json"),
        ]
        for headers, content, status, code in cases:
            answer = await found.client.post(route, content=content, headers=headers)
            assert answer.status_code == status, (headers, answer.text)
            assert status == 200 or answer.json()["error"]["code"] == code

    here(work, rules=Rules(key=KEY, body_bytes=1000))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ASKED)
@pytest.mark.parametrize(
    ("settings", "options", "status", "code"),
    [
        ({"null": {"fail": "talk"}}, {}, 502, "told_to_fail"),
        ({"null": {"reject": 1.0, "attempts": 2}}, {}, 422, "rejected"),
        ({"null-one": {"delay_s": 5}}, {"deadline": 0.05}, 504, "deadline"),
        ({"null": {}}, {"queue": 0}, 429, "queue_full"),
    ],
)
def test_a_failure_is_an_error_that_quotes_nobody(
    route: str, stream: bool, settings: Any, options: Any, status: int, code: str
) -> None:
    async def work(found: served_here.Here) -> None:
        [name] = settings
        asked = told(route, model=name, stream=stream, stimulus={"id": "talk"})
        answer = await found.client.post(route, json=asked)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code)
        assert ("retry-after" in answer.headers) == (status == 429)
        assert "told to fail" not in error["message"]
        assert found.service.waiting() == {name: 0}

    here(work, settings, **options)


@pytest.mark.parametrize("route", ASKED)
def test_an_error_repeats_nothing_of_a_request(route: str) -> None:
    secret = "s3cret-words"

    async def work(found: served_here.Here) -> None:
        wrong: list[dict[str, Any]] = [
            {"model": secret},
            {"stream": secret},
            {"seed": secret},
            {"tool_choice": {"type": "function", "name": secret}},
            {"response_format": {"type": secret}},
            {"stimulus": {"task": secret}},
            {"stimulus": {"names": [secret]}},
            {"messages": secret},
            {"messages": [{"role": secret, "content": "x"}]},
            {"prompt": [secret, secret]},
            {"input": [{"type": "item_reference", "id": secret}]},
            {"input": [{"role": "user", "content": [{"type": secret}]}]},
            {"messages": [{"role": "user", "content": [{"type": secret}]}]},
        ]
        for more in wrong:
            answer = await found.client.post(route, json=told(route, **more))
            assert secret not in answer.text or answer.status_code == 200, (more, answer.text)

    here(work)
