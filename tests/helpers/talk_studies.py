"""Studies of conversations, with participants in this process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from judging.study.log.state import Judge
from judging.study.pages.page_answers import BadAnswer
from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers.study_folders import arrived, changed, lobby_of

AT_ONCE = {"base": 0, "type_mean": 0, "type_sd": 0, "read_mean": 0, "read_sd": 0, "think_scale": 0}
ALONE: dict[str, Any] = {"agent": "eliza", "machines": 1.0}


def made(folder: Path, exchanges: int = 4, mode: str = "ping-pong", **talk: Any) -> Path:
    """A study of conversations; ``talk`` are settings, by which an agent answers at once if they do not say else."""
    row = {"id": "talk", "task": "conversation", "exchanges": exchanges, "topic": "music", "who_starts": "A"}
    (folder / "set.jsonl").write_text(json.dumps(row | {"mode": mode}) + "\n")
    assert main(["study", "new", str(folder / "set.jsonl"), "-o", str(folder / "study")]) == 0
    changed(folder / "study", before=[], after=[], **{**AT_ONCE, **talk})
    if not talk.get("machines"):  # of an agent it checks whether a server answers for it
        assert main(["study", "check", str(folder / "study")]) == 0
    return folder / "study"


async def say(study: ServedStudy, judge: Judge, turn: int, text: Any) -> str | None:
    return await lobby_of(study).move(judge, {"turn": turn, "text": text})


async def speak(study: ServedStudy, judge: Judge, name: str) -> str:
    """Converse to the end, whatever that is; returns its state."""
    after = -1
    while True:
        view = await lobby_of(study).at(judge, after)
        after = len(view["messages"])
        if view["state"] not in ("waiting", "open"):
            return str(view["state"])
        if view.get("my_turn"):
            for text in (f"{name} says {after}", "again"):  # sent twice it is there once
                assert await say(study, judge, after, text) in (None, "partner_left", "talk_failed")  # it may end


async def converse(study: ServedStudy) -> None:
    """Two new participants, x and y, converse and end."""
    people = [await arrived(study, "talk") for _ in range(2)]
    while any(judge.current for judge in people):
        states = [speak(study, judge, name) for judge, name in zip(people, "xy", strict=True)]
        assert await asyncio.gather(*states) == ["over", "over"]
        for judge in people:
            said = {"guess": "human", "sex": "female", "age": "30"} if study.settings.talk.guess else {}
            with pytest.raises(BadAnswer):
                await study.answer(judge, judge.step, {"guess": "dog"})
            assert (await study.answer(judge, judge.step, said)).is_new
