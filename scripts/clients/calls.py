"""What the Python programs of this folder share: what they say, what must come back, and how a call's end is told."""

import json
import os
import traceback
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

GIVEN: dict[str, Any] = json.loads(Path(os.environ["TURINGLIKE_CHECK"]).read_bytes())
URL: str = GIVEN["url"]  # ends in /v1
KEY = "none"
FOLDER: str = GIVEN["folder"]  # for a client's own files
FIRST, SECOND = GIVEN["said"]  # two messages of a person
REPLY, NEXT_REPLY = GIVEN["replies"]  # eliza's, as the server gave them to a plain request
CHINA: str = GIVEN["picture"]  # a JPEG in base64
COLOR: str = GIVEN["color"]  # mmcq's answer to it
SEED = 11
SEEDED = {"seed": SEED}


def attempt(
    call: str,
    ask: Callable[[], str],
    wanted: str | None = REPLY,
    refused: int | Literal["client"] | None = None,
    sends: dict[str, Any] | None = None,
    requests: int | None = None,
) -> None:
    """``ask`` must return ``wanted``, or any text if that is None. ``refused`` is the status of a rightful refusal, or
    "client" where the client itself must refuse: what eliza writes has not the form that the client's prompt asks for.
    ``sends`` must stand in each request: eliza's answers do not show whether a seed arrived. ``requests`` is how many
    questions the server must get, if that matters.
    """
    end: dict[str, Any] = {"call": call, "refused": refused, "sends": sends or {}, "requests": requests}
    try:
        got = ask()
        if not got.strip() or wanted not in (None, got):
            end["wrong"] = f"{got!r} instead of {wanted!r}"
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        end["error"] = f"{type(error).__name__}: {error}"
    told = urllib.request.Request(GIVEN["ended"], json.dumps(end).encode(), {"Content-Type": "application/json"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(told).close()


def joined(pieces: Iterable[str | None]) -> str:
    """The whole of a stream, which must have come in pieces."""
    texts = [piece for piece in pieces if piece]
    if len(texts) < 2:
        raise ValueError(f"a stream of {len(texts)} pieces")
    return "".join(texts)


def same(ask: Callable[[], str]) -> str:
    """The text of two equal requests, which must be equal."""
    texts = {ask(), ask()}
    if len(texts) > 1:
        raise ValueError(f"two texts with one seed: {sorted(texts)}")
    return texts.pop()
