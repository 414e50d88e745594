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
from agents.stimuli import ConversationStimulus
from judging.study.asking import StimulusMaterial
from judging.study.lobby import Lobby
from judging.study.material import Material, ToldError, TrialMaterial
from judging.study.online.lobby import OnlineLobby
from judging.study.online.material import OnlineMaterial
from judging.study.online.tests import HeldTests
from judging.study.page_answers import BadAnswer, panel_id, read_questions
from judging.study.settings import JudgesSettings, told
from judging.study.state import ASKED, EVENTS, PERSONAL, Judge, State, Step, read_links, read_personal, read_state
from judging.study.state import seen as seen_by
from serving.runs.store import Store
from serving.timestamps import now

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # of codes: nothing that looks like something else
INTERVAL = 0.01  # seconds in which verdicts are collected into one write
EARLY = 0.1  # seconds by which a browser's clock may be ahead in a trial
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
        self._by_worker = {worker: code for code, worker in self._workers.items() if code in self.state.judges}
        self._released: set[str] = set()
        self._seen = seen_by(list(self.state.judges.values()), self._released)
        self._checked = 0.0
        self._turned: dict[str, float] = {}  # when each judge's step became the next one, as far as this server knows
        began_with = (self.state.settings or {}).get("task", self.settings.task)
        if self.state.judges and began_with != self.settings.task:
            raise InputError(
                f"{folder}: the people of this study began with {began_with}, not with {self.settings.task}"
            )
        if self.state.sha256 not in (None, material.sha256):
            raise InputError(f"{self.settings.source}: is not the set that the people of this study began with")
        self.lobby: Lobby | None = None
        self.online: OnlineLobby | None = None
        if isinstance(material, OnlineMaterial):
            held = HeldTests(material.settings, self.state, self._talked)
            self.online = OnlineLobby(held, self._written)
        if isinstance(material, StimulusMaterial):
            talks = {name: one for name, one in material.stimuli.items() if isinstance(one, ConversationStimulus)}
            if talks:
                self.lobby = Lobby(material.settings, talks, self.state, self._talked)
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
        for lobby in (self.lobby, self.online):
            if lobby is not None:
                await lobby.close()
        if self._writer is not None:
            await self.store.finish(self._writer)

    # judges

    @property
    def cookie(self) -> str:
        """The name of the cookie: a host's other studies, at other ports, have others."""
        return f"judge-{hashed(f'{self.state.began} {self.state.sha256}')[:8]}"

    def find(self, token: str | None, link: str | None = None) -> Judge | None:
        """The judge whose browser has this session, if there is one. Where links are one's own, the browser's last
        judge is not who opens another's ``link`` in it."""
        judge = None if not token else self.state.by_session.get(hashed(token))
        is_other = link and judge is not None and judge.link not in (None, hashed(link))
        return None if is_other else judge

    async def join(self, link: str | None, worker: str | None) -> tuple[Judge, str]:
        """A new judge, and the token of their session. ``link`` is the token of a link of their own, ``worker`` the id
        that a panel has given: each always leads to the same judge, in whatever browser. Raises Refused."""
        settings, token = self.settings.judges, secrets.token_urlsafe(24)
        worker = panel_id(worker, settings.worker)
        own = hashed(link) if link and settings.entry == "links" else None
        if own is not None and own not in self._links:
            self._links = read_links(self.folder)  # more may have been made
        if settings.entry == "links" and (own is None or own not in self._links):
            raise Refused("no_link")
        judge = self.state.by_link.get(own or "") or self.state.judges.get(self._by_worker.get(worker, ""))
        if judge is not None:
            self._note({"event": "session", "judge": judge.code, "at": now(), "session": hashed(token)})
            await self.loaded(judge)
            return judge, token
        self._release()
        finished = sum(map(self.state.has_finished, self.state.judges.values()))
        enough = finished >= settings.wanted or (self.online is not None and self.online.is_enough())
        if self.state.closed or enough:
            raise Refused("closed")
        if self._open() >= settings.most:
            raise Refused("full")
        judge = self._enlist(hashed(token), link=own)
        if worker:
            self._workers[judge.code], self._by_worker[worker] = worker, judge.code
            self._personal(judge.code, {"worker": worker})
        await self._written()
        return judge, token

    async def enlist(self, kit: str) -> Judge:
        """A new judge of an offline kit."""
        judge = self._enlist(hashed(secrets.token_urlsafe(24)), kit=kit)
        await self._written()
        return judge

    def _enlist(self, session: str, *, link: str | None = None, kit: str | None = None) -> Judge:
        number = len(self.state.judges) + 1
        code = "".join(secrets.choice(ALPHABET) for _ in range(8))
        keys = list(self.settings.trials.keys) if isinstance(self.settings, JudgesSettings) else []
        of_pairs = isinstance(self.material, TrialMaterial) and self.material.pool.of_pairs
        event = {
            "event": "joined", "judge": code, "at": now(), "session": session, "number": number,
            "link": link, "kit": kit,
            # Counterbalanced: the first is for "human". Of pairs the left key is the first conversation's, "machine".
            "keys": keys if number % 2 and not of_pairs else keys[::-1],
            "steps": self._steps(random.Random(secrets.token_bytes(16))),
            "end_code": self.settings.end.code or secrets.token_hex(5).upper(),
        }  # fmt: skip
        self._note(event)
        return self.state.judges[code]

    async def loaded(self, judge: Judge) -> None:
        """The judge's page was loaded again: they go on, begin anew or are shut out, as the study says. Who has seen
        too much for a whole new list goes on."""
        policy = self.settings.judges.reload
        at_it = judge.current is not None and judge.has_judged()
        self._note({"event": "loaded", "judge": judge.code, "at": now()})
        if policy == "block" and at_it:
            self._note({"event": "blocked", "judge": judge.code, "at": now()})
        elif policy == "restart" and at_it:
            steps, kinds = (
                self._steps(random.Random(secrets.token_bytes(16)), self._had(judge)),
                [step["kind"] for step in judge.steps],
            )
            if [step["kind"] for step in steps] == kinds:
                first = next(at for at, kind in enumerate(kinds) if kind in ASKED)
                self._note({"event": "restarted", "judge": judge.code, "at": now(), "from": first, "steps": steps})
        await self._written()

    async def answer(self, judge: Judge, step: int, said: Any, *, at: str | None = None) -> bool:
        """Keep the answer to a step; returns whether it is new. On return it is on disk, as is the first answer to a
        step that was answered before. Raises Refused where it is not this step's turn, BadAnswer, and
        ToldError where it is to be given anew, which is kept as well. ``at``: when it was given, if not now."""
        if step < judge.step:
            await self._written()
            return False
        current = judge.current
        if current is None or step > judge.step:
            raise Refused("not_yet")
        if self.state.closed:
            raise Refused("closed")
        if current["kind"] == "trial" and at is None and isinstance(self.settings, JudgesSettings):
            least = self.settings.trials.seconds_before - EARLY
            if time.monotonic() - self._turned.get(judge.code, float("-inf")) < least:
                raise BadAnswer("came sooner than a page lets anybody answer")
        event = {"event": "step", "judge": judge.code, "at": at or now(), "step": step, "kind": current["kind"]}
        try:
            kept, personal = self.checked(judge, current, said)
            self._personal(judge.code, personal)
            self._note(event | kept)
        except ToldError as error:
            self._note(event | {"event": "told", "said": error.said, "flags": error.flags})
            await self._written()
            raise
        self._turned[judge.code] = time.monotonic()
        await self._written()
        return True

    def checked(self, judge: Judge, step: Step, said: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """What is kept of an answer to a step, and apart from it what is personal. Raises as :meth:`answer` does."""
        if not isinstance(said, dict):
            raise BadAnswer("an answer is an object")
        match step["kind"]:
            case "consent":
                if not isinstance(said.get("agree"), bool):
                    raise BadAnswer("agree: must be true or false")
                return {"agree": said["agree"]}, {}
            case "questions" | "after":
                questions = self.settings.questions
                return {}, read_questions(questions.before if step["kind"] == "questions" else questions.after, said)
            case "instructions":
                return {}, {}
            case "talk":
                talk = self.lobby.result(judge) if self.lobby is not None else None
                is_in_one = self.state.talk_of(judge.code) is not None
                if talk is None and (is_in_one or said.get("nobody") is not True):
                    raise Refused("not_yet")
                said = {name: value for name, value in said.items() if name != "nobody"}
                return {"talk": talk, **self.material.read(judge, step, said)}, {}
            case "test":
                test = self.online.result(judge) if self.online is not None else None
                is_in_one = self.state.tests.test_of(judge.code) is not None
                if test is None and (is_in_one or said.get("nobody") is not True):
                    raise Refused("not_yet")
                said = {name: value for name, value in said.items() if name != "nobody"}
                return {"test": test, **self.material.read(judge, step, said)}, {}
        return self.material.read(judge, step, said), {}

    def worker(self, code: str) -> str:
        """The id that a panel has given the judge; "" without one."""
        return self._workers.get(code, "")

    # what is written

    def _note(self, event: dict[str, Any]) -> None:
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)  # what cannot be written never happened
        self.state.apply(event)
        judge = self.state.judges.get(event.get("judge", ""))
        if event["event"] in ("joined", "restarted") and judge is not None:
            self._seen.update(judge.pages())
        self.store.put(self.folder / EVENTS, line)

    async def _talked(self, *events: dict[str, Any]) -> None:
        for event in events:
            self._note({**event, "at": now()})
        await self._written()

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
        lists = [*judge.former, (judge.steps, judge.answers)]
        shown = [step for steps, answers in lists for step in steps[: len(answers) + 1]]
        return {self.material.stimulus_of(step) for step in shown if step["kind"] in ASKED}

    def _open(self) -> int:
        """Judges who have finished or are at it."""
        return sum(
            1
            for judge in self.state.judges.values()
            if self.state.has_finished(judge) or (judge.ended is None and judge.code not in self._released)
        )

    def _release(self) -> None:
        """Give the trials of those who have stayed away to others."""
        if time.monotonic() - self._checked < CHECKED_EVERY and self._checked:
            return
        self._checked = time.monotonic()
        oldest = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 3600 * self.settings.judges.hours))
        judges = list(self.state.judges.values())
        self._released = {
            judge.code for judge in judges if judge.ended is None and judge.kit is None and judge.at < oldest
        }
        self._seen = seen_by(judges, self._released)


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
