"""The header ``Turinglike-Not-Kept``: a request says that its answer is not to be kept in the server's run folder.

Chat programs ask for more than people do, such as a title for the conversation; with ``Turinglike-Not-Kept:
title_generation`` this does not become a record.
"""

import re
from typing import Annotated, Any

from fastapi import Depends, Request

from serving.http.errors import invalid
from serving.http.openai_options import unsupported

NAME = "Turinglike-Not-Kept"
WORD = "[A-Za-z][A-Za-z0-9_.-]{0,99}"  # a reason
DENIALS = ("no", "false")  # words that may mean the opposite


DESCRIBED = "Why the answer is not kept by --out, in a word (`title_generation`); it is kept without one."
# The header as FastAPI would document it. It is no parameter of FastAPI's: to take all headers of a request apart for
# this one took an eighth of the server's time.
NOT_KEPT_HEADER: dict[str, Any] = {
    "parameters": [
        {
            "name": NAME,
            "in": "header",
            "required": False,
            "schema": {
                "type": "string",
                "default": "",
                "title": NAME,
                "pattern": f"^({WORD})?$",
                "description": DESCRIBED,
            },
            "description": DESCRIBED,
        }
    ]
}
"""What a route that takes the header says of it: its ``openapi_extra``."""


# Both are coroutines: FastAPI gives other functions to threads, and requests would overtake one another.
async def is_kept(request: Request) -> bool:
    """Whether the answer to a request is kept: so it is without the header. Raises ApiError 422 for a reason that is no
    word."""
    # A proxy may add a header of its own to one that stands there.
    reasons = [given for given in request.headers.getlist(NAME) if given]
    for given in reasons:
        if re.fullmatch(WORD, given) is None or given.lower() in DENIALS:
            # Such as a mark that a program has not filled in: taken at its word, it would lose all that people say.
            raise invalid([(NAME, "must be a word, the reason; leave it out or empty, and the answer is kept")])
    return not reasons


Keep = Annotated[bool, Depends(is_kept)]


async def refuse_not_kept(keep: Keep) -> None:
    """Raises ApiError 400 for the header on routes of conversations, which are kept as a whole."""
    if not keep:
        raise unsupported([(NAME, "a conversation is kept as a whole, with each of its messages")])
