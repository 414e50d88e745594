"""Bodies of a study's requests and replies: JSON objects, which no cache keeps."""

from typing import Any

import orjson
from fastapi import Request, Response

from serving.files.row_problems import strict_json
from serving.http.errors import ApiError


async def read_body(request: Request) -> dict[str, Any]:
    """The object in a request's body. Raises ApiError 400 where it is no JSON, and 422 where it is no object."""
    try:
        body = strict_json(await request.body())
    except ValueError:
        raise ApiError(400, "bad_json", "the body is no JSON") from None
    if not isinstance(body, dict):
        raise ApiError(422, "invalid_request", "the body must be an object")
    return body


def json_reply(value: Any) -> Response:
    """A value as the body of a response with status 200."""
    return Response(orjson.dumps(value), media_type="application/json", headers={"cache-control": "no-store"})
