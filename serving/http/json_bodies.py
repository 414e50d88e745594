"""Bodies whose texts consist of whole characters.

JSON can write half a character: ``"\\ud83d"``, one of two parts of an emoji. Python reads it, but cannot write it as
UTF-8, so that the answer, the record or the log would fail long after the request was taken.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from serving.http.errors import invalid

HALF = "holds half of a character (a lone surrogate, as of an emoji that was cut), which is no text"


class JsonRoute(APIRoute):
    """A route of FastAPI that refuses half a character in its body with 422, wherever it stands."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, which reads its body through :func:`refuse_halves`."""
        handle = super().get_route_handler()

        async def handle_whole(request: Request) -> Response:
            return await handle(_WholeTextRequest(request.scope, request.receive))

        return handle_whole


class _WholeTextRequest(Request):
    async def json(self) -> Any:
        content = await super().json()
        body = await self.body()
        # Without an escape and of ASCII alone, as images in base64 are, a body cannot have one.
        if b"\\" in body or not body.isascii():
            refuse_halves(content)
        return content


def refuse_halves(content: Any) -> None:
    """Raises ApiError 422, with all places, if a text or a key of a JSON value holds half a character."""
    problems = []
    left: list[tuple[str, Any]] = [("", content)]
    while left:
        where, value = left.pop()
        if isinstance(value, str):
            if _is_half(value):
                problems.append((where or "body", HALF))
        elif isinstance(value, list):
            for number, inside in enumerate(value):
                left.append((f"{where}.{number}" if where else str(number), inside))
        elif isinstance(value, dict):
            for key, inside in value.items():
                if _is_half(key):
                    problems.append((where or "body", f"a key {HALF}"))
                else:
                    left.append((f"{where}.{key}" if where else key, inside))
    if problems:
        raise invalid(problems[::-1])


def _is_half(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
