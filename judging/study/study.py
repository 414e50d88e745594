"""A study while it is served: judges join, are shown a step, answer it. What is answered is on disk before anybody is
told that it is.

Nothing here knows HTTP. All of it runs in one event loop; an event is taken into the state and given to the store in
one go, so that two tabs that answer the same step give one verdict, the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from judging.study.material import Material, ToldError
from judging.study.questionnaire import checked
from judging.study.settings import JudgesSettings, told
from judging.study.state import ASKED, EVENTS, PERSONAL, Judge, State, Step, read_links, read_personal, read_state
from judging.study.state import seen as seen_by
from judging.study.verdict import BadAnswer
from serving.runs.store import Store
from serving.timestamps import now

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # of codes: nothing that looks like something else
INTERVAL = 0.01  # seconds in which verdicts are collected into one write
CHECKED_EVERY = 60.0  # seconds after which it is looked again who has stayed away


class Refused(Exception):
    """A judge cannot join or go on; ``why`` is a phrase's name."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Study:
    """The study in ``folder``, whose lock the caller holds (``check``). Raises InputError where anything that judges
    will need is missing or has changed since they began."""

    def __init__(self, folder: Path, material: Material, check: Callable[[], None]) -> None:
        self.folder = folder
        self.settings = material.settings
        self.material = material
        self.state: State = read_state(folder)
        self.store = Store(check, INTERVAL)
        self._writer: asyncio.Task[None] | None = None
        self._links = read_links(folder)
        known = read_personal(folder).items()
        self._workers: dict[str, str] = {code: said["worker"] for code, said in known if "worker" in said}
        self._released: set[str] = set()
        self._seen = seen_by(list(self.state.judges.values()), self._released)
        self._checked = 0.0
        if self.state.sha256 not in (None, material.sha256):
            raise InputError(f"{self.settings.source}: is not the set that the people of this study began with")
        self._begin = {"event": "settings", "at": now(), "settings": told(self.settings), "sha256": material.sha256}
        for problem in material.problems():
            raise InputError(f"{folder}: {problem}")

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError where nothing can be written any more."""
        for name in (EVENTS, PERSONAL):
            self.store.open(self.folder / name)
        if self._begin["settings"] != self.state.settings:
            self._note(self._begin)
        self._writer = asyncio.create_task(self.store.run())
        return self._writer

    async def close(self) -> None:
        """Write what is left. Raises StorageError."""
        if self._writer is not None:
            await self.store.finish(self._writer)

    # judges

    def find(self, token: str | None) -> Judge | None:
        """The judge whose browser has this session, if there is one."""
        return None if not token else self.state.by_session.get(hashed(token))

    async def join(self, link: str | None, worker: str | None) -> tuple[Judge, str]:
        """A new judge, and the token of their session. ``link`` is the token of a link of their own, which always leads
        to the same judge, in whatever browser; ``worker`` the id that a panel has given. Raises Refused."""
        settings, token = self.settings.judges, secrets.token_urlsafe(24)
        own = hashed(link) if link and settings.entry == "links" else None
        if settings.entry == "links" and (own is None or own not in self._links):
            raise Refused("no_link")
        if own is not None and own in self.state.by_link:
            judge = self.state.by_link[own]
            self._note({"event": "session", "judge": judge.code, "at": now(), "session": hashed(token)})
            await self._written()
            return judge, token
        self._release()
        if self.state.closed or self.state.finished >= settings.wanted:
            raise Refused("closed")
        if self._open() >= settings.most:
            raise Refused("full")
        number = len(self.state.judges) + 1
        code = "".join(secrets.choice(ALPHABET) for _ in range(8))
        chance = random.Random(secrets.token_bytes(16))
        steps = self._steps(chance)
        keys = list(self.settings.trials.keys) if isinstance(self.settings, JudgesSettings) else []
        keys = keys if number % 2 else keys[::-1]  # counterbalanced: the first is for "human"
        event = {
            "event": "joined", "judge": code, "at": now(), "session": hashed(token), "number": number, "keys": keys,
            "steps": steps, "end_code": self.settings.end.code or secrets.token_hex(5).upper(),
            "link": own,
        }  # fmt: skip
        self._note(event)
        if worker:
            self._workers[code] = worker[:200]
            self._personal(code, {"worker": worker[:200]})
        await self._written()
        return self.state.judges[code], token

    async def loaded(self, judge: Judge) -> None:
        """The judge's page was loaded again: they go on, begin anew or are shut out, as the study says."""
        policy = self.settings.judges.reload
        at_it = judge.current is not None and judge.has_judged()
        self._note({"event": "loaded", "judge": judge.code, "at": now()})
        if policy == "block" and at_it:
            self._note({"event": "blocked", "judge": judge.code, "at": now()})
        elif policy == "restart" and at_it:
            steps = self._steps(random.Random(secrets.token_bytes(16)), self._had(judge))
            first = next(at for at, step in enumerate(steps) if step["kind"] in ASKED)
            self._note({"event": "restarted", "judge": judge.code, "at": now(), "from": first, "steps": steps})
        await self._written()

    async def answer(self, judge: Judge, step: int, said: Any) -> bool:
        """Keep the answer to a step; returns whether it is new. On return it is on disk, as is the first answer to a
        step that was answered before. Raises Refused where it is not this step's turn, BadAnswer, and
        ToldError where it is to be given anew, which is kept as well."""
        if step < judge.step:
            await self._written()
            return False
        current = judge.current
        if current is None or step > judge.step:
            raise Refused("not_yet")
        if self.state.closed:
            raise Refused("closed")
        event = {"event": "step", "judge": judge.code, "at": now(), "step": step, "kind": current["kind"]}
        try:
            self._note(event | self._said(judge, current, said))
        except ToldError as error:
            self._note(event | {"event": "told", "said": error.said, "flags": error.flags})
            await self._written()
            raise
        await self._written()
        return True

    def _said(self, judge: Judge, step: Step, said: Any) -> dict[str, Any]:
        if not isinstance(said, dict):
            raise BadAnswer("an answer is an object")
        match step["kind"]:
            case "consent":
                if not isinstance(said.get("agree"), bool):
                    raise BadAnswer("agree: must be true or false")
                return {"agree": said["agree"]}
            case "questions" | "after":
                questions = self.settings.questions
                try:
                    found = checked(questions.before if step["kind"] == "questions" else questions.after, said)
                except ValueError as error:
                    raise BadAnswer(str(error)) from None
                self._personal(judge.code, found)
                return {}
            case "instructions":
                return {}
        return self.material.read(judge, step, said)

    def worker(self, code: str) -> str:
        """The id that a panel has given the judge; "" without one."""
        return self._workers.get(code, "")

    # what is written

    def _note(self, event: dict[str, Any]) -> None:
        self.state.apply(event)
        judge = self.state.judges.get(event.get("judge", ""))
        if event["event"] in ("joined", "restarted") and judge is not None:
            self._seen.update(judge.pages())
        self.store.put(self.folder / EVENTS, orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))

    def _personal(self, code: str, said: dict[str, str]) -> None:
        if said:
            line = {"judge": code, "at": now(), "said": said}
            self.store.put(self.folder / PERSONAL, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    async def _written(self) -> None:
        await self.store.written([self.folder / EVENTS, self.folder / PERSONAL])

    # lists

    def _steps(self, chance: random.Random, known: Collection[str] = ()) -> list[Step]:
        settings = self.settings
        before: list[Step] = [{"kind": "consent"}] if settings.texts.consent else []
        before += [{"kind": "questions"}] if settings.questions.before else []
        after: list[Step] = [{"kind": "after"}] if settings.questions.after else []
        return [*before, {"kind": "instructions"}, *self.material.steps(self._seen, chance, known), *after]

    def _had(self, judge: Judge) -> set[str]:
        """The stimuli that a judge has seen."""
        shown = [*judge.steps[: judge.step + 1], *(step for steps, _ in judge.former for step in steps)]
        return {self.material.stimulus_of(step) for step in shown if step["kind"] in ASKED}

    def _open(self) -> int:
        """Judges who have finished or are at it."""
        return sum(
            1
            for judge in self.state.judges.values()
            if judge.ended == "finished" or (judge.ended is None and judge.code not in self._released)
        )

    def _release(self) -> None:
        """Give the trials of those who have stayed away to others."""
        if time.monotonic() - self._checked < CHECKED_EVERY and self._checked:
            return
        self._checked = time.monotonic()
        oldest = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 3600 * self.settings.judges.hours))
        judges = list(self.state.judges.values())
        self._released = {judge.code for judge in judges if judge.ended is None and judge.at < oldest}
        self._seen = seen_by(judges, self._released)


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
