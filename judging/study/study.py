"""A study while it is served: judges join, see a step, answer it. An answer is on disk before its page goes on.

Nothing here knows HTTP. All of it runs in one event loop; an event is taken into the state and given to the store at
once, so that two tabs that answer the same step give a single verdict, the first.
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
from judging.study.pool import TrialPool
from judging.study.settings import AnswersSettings, JudgesSettings, OnlineSettings, StudySettings, kept_settings
from judging.study.state import (
    ASKED,
    EVENTS,
    PERSONAL,
    Judge,
    State,
    Step,
    count_pages,
    read_links,
    read_personal,
    read_state,
)
from serving.runs.store import Store
from serving.timestamps import now

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # of codes: nothing that looks like something else
INTERVAL = 0.01  # seconds in which verdicts are collected into one write
EARLY = 0.1  # seconds by which a browser's clock may be ahead in a trial
CHECKED_EVERY = 60.0  # seconds between two looks at who has stayed away


class Refused(Exception):
    """A judge cannot join or go on; ``why`` is the name of a phrase."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def material_of(folder: Path, settings: StudySettings, source: Path) -> Material:
    """What the study in ``folder`` shows. Raises InputError."""
    if isinstance(settings, AnswersSettings):
        return StimulusMaterial(source, settings)
    if isinstance(settings, OnlineSettings):
        return OnlineMaterial(settings)
    return TrialMaterial(TrialPool(source, settings), folder)


class Study:
    """The study in ``folder``, whose lock the caller holds (``check``). Raises InputError where anything that judges
    need is missing or has changed since they began."""

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
        self._seen = count_pages(list(self.state.judges.values()), self._released)
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
            talks = {name: row for name, row in material.stimuli.items() if isinstance(row, ConversationStimulus)}
            if talks:
                self.lobby = Lobby(material.settings, talks, self.state, self._talked)
        kept = kept_settings(self.settings)
        self._begin = {"event": "settings", "at": now(), "settings": kept, "sha256": material.sha256}
        for problem in material.problems():
            raise InputError(f"{folder}: {problem}")

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError where nothing can be written."""
        for name in (EVENTS, PERSONAL):
            self.store.open(self.folder / name)
        if self._begin["settings"] != self.state.settings:
            self._note(self._begin)
        self._writer = asyncio.create_task(self.store.run())
        return self._writer

    async def close(self) -> None:
        for lobby in (self.lobby, self.online):
            if lobby is not None:
                await lobby.close()
        if self._writer is not None:
            await self.store.finish(self._writer)

    # judges

    @property
    def cookie(self) -> str:
        """The cookie's name, which differs between the studies of a host."""
        return f"judge-{hashed(f'{self.state.began} {self.state.sha256}')[:8]}"

    def find(self, token: str | None, link: str | None = None) -> Judge | None:
        """The judge whose browser has this session; None for a personal ``link`` of somebody else."""
        judge = None if not token else self.state.by_session.get(hashed(token))
        is_other = link and judge is not None and judge.link not in (None, hashed(link))
        return None if is_other else judge

    async def join(self, link: str | None, worker: str | None) -> tuple[Judge, str]:
        """A judge, and the token of their session. Raises Refused.

        ``link`` is the token of a personal link, ``worker`` a panel's id: either always leads to the same judge.
        """
        settings, token = self.settings.judges, secrets.token_urlsafe(24)
        worker = panel_id(worker, settings.worker)
        personal = hashed(link) if link and settings.entry == "links" else None
        if personal is not None and personal not in self._links:
            self._links = read_links(self.folder)  # more may have been made
        if settings.entry == "links" and (personal is None or personal not in self._links):
            raise Refused("no_link")
        judge = self.state.by_link.get(personal or "") or self.state.judges.get(self._by_worker.get(worker, ""))
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
        judge = self._enlist(hashed(token), link=personal)
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
        """The judge's page was loaded again: they go on, begin anew or are shut out, as the settings say.

        Who has seen too much for a new list goes on.
        """
        policy = self.settings.judges.reload
        at_it = judge.current is not None and judge.has_judged()
        self._note({"event": "loaded", "judge": judge.code, "at": now()})
        if policy == "block" and at_it:
            self._note({"event": "blocked", "judge": judge.code, "at": now()})
        elif policy == "restart" and at_it:
            steps = self._steps(random.Random(secrets.token_bytes(16)), self._had(judge))
            kinds = [step["kind"] for step in judge.steps]
            if [step["kind"] for step in steps] == kinds:
                first = next(at for at, kind in enumerate(kinds) if kind in ASKED)
                self._note({"event": "restarted", "judge": judge.code, "at": now(), "from": first, "steps": steps})
        await self._written()

    async def answer(self, judge: Judge, step: int, answer: Any, *, at: str | None = None) -> bool:
        """Keep the answer to a step, given now or ``at`` a time; returns whether it is new. On return it is on disk.

        Raises Refused where it is not this step's turn, BadAnswer, and ToldError (which is kept) where it is to be
        given anew.
        """
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
            kept, personal = self.checked(judge, current, answer)
            self._personal(judge.code, personal)
            self._note(event | kept)
        except ToldError as error:
            self._note(event | {"event": "told", "said": error.said, "flags": error.flags})
            await self._written()
            raise
        self._turned[judge.code] = time.monotonic()
        await self._written()
        return True

    def checked(self, judge: Judge, step: Step, answer: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """What is kept of an answer to a step, and what is personal of it. Raises as :meth:`answer` does."""
        if not isinstance(answer, dict):
            raise BadAnswer("an answer is an object")
        match step["kind"]:
            case "consent":
                if not isinstance(answer.get("agree"), bool):
                    raise BadAnswer("agree: must be true or false")
                return {"agree": answer["agree"]}, {}
            case "questions" | "after":
                questions = self.settings.questions
                return {}, read_questions(questions.before if step["kind"] == "questions" else questions.after, answer)
            case "instructions":
                return {}, {}
            case "talk":
                talk = self.lobby.result(judge) if self.lobby is not None else None
                return self._left(judge, step, talk, self.state.talk_of(judge.code) is not None, answer), {}
            case "test":
                test = self.online.result(judge) if self.online is not None else None
                return self._left(judge, step, test, self.state.tests.test_of(judge.code) is not None, answer), {}
        return self.material.read(judge, step, answer), {}

    def _left(
        self, judge: Judge, step: Step, result: str | None, takes_part: bool, answer: dict[str, Any]
    ) -> dict[str, Any]:
        """The end of a talk or test, or of the time in the lobby where nobody came."""
        if result is None and (takes_part or answer.get("nobody") is not True):
            raise Refused("not_yet")
        about = {name: value for name, value in answer.items() if name != "nobody"}
        return {step["kind"]: result, **self.material.read(judge, step, about)}

    def worker(self, code: str) -> str:
        """A panel's id of the judge; "" without one."""
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
        lists = [*judge.former, (judge.steps, judge.answers)]
        shown = [step for steps, answers in lists for step in steps[: len(answers) + 1]]
        return {self.material.stimulus_of(step) for step in shown if step["kind"] in ASKED}

    def _open(self) -> int:
        return sum(
            1
            for judge in self.state.judges.values()
            if self.state.has_finished(judge) or (judge.ended is None and judge.code not in self._released)
        )

    def _release(self) -> None:
        # The trials of judges who have stayed away go to others.
        if time.monotonic() - self._checked < CHECKED_EVERY and self._checked:
            return
        self._checked = time.monotonic()
        oldest = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 3600 * self.settings.judges.hours))
        judges = list(self.state.judges.values())
        self._released = {
            judge.code for judge in judges if judge.ended is None and judge.kit is None and judge.at < oldest
        }
        self._seen = count_pages(judges, self._released)


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
