"""JSON bodies whose texts are all of whole characters."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from serving.http.errors import invalid

HALF = "holds half of a character (a lone surrogate, as of an emoji that was cut), which is no text"


class JsonRoute(APIRoute):
    """A route that refuses half an emoji with 422, wherever in the body it stands."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
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
    """Raises ApiError if a text or a key of a JSON value has a lone surrogate: nothing could be sent or kept of it."""
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
