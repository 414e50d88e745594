"""A study while it is served: judges join, are sent a step, answer it. An answer is on disk before its page goes on."""

import asyncio
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from agents.errors import InputError
from judging.study import events
from judging.study.addresses import Address, read_address
from judging.study.codes import draw_code, hashed
from judging.study.events import ASKED, EVENTS, PERSONAL, Judge, State, Step
from judging.study.meetings.lobby import Lobby, TalkLobby
from judging.study.meetings.lobby_of_tests import OnlineLobby
from judging.study.meetings.lobby_with_clock import InterrogationLobby
from judging.study.pages.material import Material
from judging.study.pages.materials import TalkMaterial
from judging.study.pages.page_answers import (
    BadAnswer,
    InstructionsAnswer,
    Refused,
    ToldError,
    parsed,
    read_questions,
)
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results.exclusions import completion_code
from judging.study.settings import InterrogationSettings, JudgesSettings, OnlineSettings
from serving.files.timestamps import now
from serving.runs.store import Store

AHEAD = 3  # trials whose pictures are got before they are shown
STUDY_STATIC = Path(__file__).with_name("static")


@dataclass(frozen=True, slots=True)
class Receipt:
    """``flags`` are phrases, for which the step must be answered anew; ``truth`` is None where it is not shown."""

    is_new: bool
    flags: Sequence[str] = ()
    truth: list[str] | None = None


class Study:
    """A study, whose lock the caller holds (``check``). Raises InputError where anything is missing or has changed."""

    def __init__(self, folder: Path, material: Material, check: Callable[[], None]) -> None:
        self.folder = folder
        self.settings = material.settings
        self.material = material
        self._forget(events.read_state(folder))  # who has left a server that was killed
        self.state: State = events.read_state(folder)
        self.store = Store(check, interval=0.01)
        self._writer: asyncio.Task[None] | None = None
        self.personal = events.read_personal(folder)
        # Also of who left and deleted, until this process ends and the files are without them: at the same browser
        # somebody else must not be taken for them, and they themselves are told that they have left.
        self._panel_ids = {code: str(said["worker"]) for code, said in self.personal.items() if "worker" in said}
        began_with = (self.state.settings or {}).get("task", self.settings.task)
        if self.state.judges and began_with != self.settings.task:
            raise InputError(f"{folder}: the people of this study began with {began_with}")
        if self.state.sha256 not in (None, material.sha256):
            raise InputError(f"{self.settings.source}: is not the set that the people of this study began with")
        self.lobby = self._lobby()
        kept = self.settings.model_dump(mode="json", by_alias=True, exclude={"texts"})
        consent = self.settings.texts.consent
        about = {"settings": kept, "consent": {"sha256": hashed(consent), "text": consent}}
        self._begin: dict[str, Any] = {"event": "settings", "at": now(), **about, "sha256": material.sha256}
        for problem in material.problems():
            raise InputError(f"{folder}: {problem}")

    def _lobby(self) -> Lobby[Any] | None:
        if isinstance(self.settings, OnlineSettings):
            return OnlineLobby(self, self.settings)
        if isinstance(self.settings, InterrogationSettings):
            return InterrogationLobby(self, self.settings)
        if isinstance(self.material, TalkMaterial):
            return TalkLobby(self, self.material)
        return None

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError where nothing can be written."""
        for name in (EVENTS, PERSONAL):
            self.store.open(self.folder / name)
        if (self._begin["settings"], self._begin["consent"]) != (self.state.settings, self.state.consent):
            self._put(self._begin)
        self._writer = asyncio.create_task(self.store.run())
        return self._writer

    async def close(self) -> None:
        if self.lobby is not None:
            await self.lobby.close()
        if self._writer is not None:
            await self.store.finish(self._writer)
            self._forget(self.state)

    def _forget(self, state: State) -> None:
        events.forget(self.folder, [code for code, judge in state.judges.items() if judge.ended == "left"])

    # judges

    @property
    def cookie(self) -> str:
        return f"judge-{hashed(f'{self.state.began} {self.state.sha256}')[:8]}"

    def find(
        self,
        token: str | None,
        link: str | None = None,
        panel_id: str | None = None,
        *,
        code: str | None = None,
    ) -> Judge | None:
        """The judge of the browser that holds the ``token``, as far as they are whom its address is for. An address
        that names nobody is for the judge whose ``code`` the page has, or for whoever was here last. Raises Refused."""
        judge = None if not token else self.state.by_session.get(hashed(token))
        if judge is None:
            return None
        address = self._address(link, panel_id)
        is_other_page = code not in (None, judge.code) and not address.is_personal
        return judge if address.is_of(judge, self.panel_id(judge.code)) and not is_other_page else None

    async def join(
        self, link: str | None, panel_id: str | None, parameters: Mapping[str, str | None] | None = None
    ) -> tuple[Judge, str]:
        """A judge, the same for the same ``link`` or ``panel_id``, and their session's token. Raises Refused."""
        settings = self.settings.judges
        token = secrets.token_urlsafe(24)
        address = self._address(link, panel_id, parameters)
        if settings.entry == "links" and address.link not in events.read_links(self.folder):
            raise Refused("no_link")
        judge = self._judge_of(address)
        if judge is not None:
            await self.note({"event": "session", "judge": judge.code, "session": hashed(token)})
            await self.entered(judge, parameters or {})
            await self.loaded(judge)
            return judge, token
        finished = sum(map(self.state.has_finished, self.state.judges.values()))
        is_enough = finished >= settings.wanted or (self.lobby is not None and self.lobby.is_enough())
        if self.state.closed or is_enough:
            raise Refused("closed")
        away = self.away()
        at_it = sum(judge.ended is None and code not in away for code, judge in self.state.judges.items())
        if finished + at_it >= settings.most:
            raise Refused("full")
        personal = dict(address.parameters)
        if address.panel_id:
            personal["worker"] = address.panel_id
        return await self.enlist(token, link=address.link, about=personal), token

    def _address(
        self, link: str | None, panel_id: str | None, parameters: Mapping[str, str | None] | None = None
    ) -> Address:
        links = events.read_links(self.folder) if link else set[str]()
        return read_address(self.settings.judges, links, link, panel_id, parameters or {})

    def _judge_of(self, address: Address) -> Judge | None:
        """The judge who has the id, or else the link. Raises Refused for a link of somebody with another id."""
        for code, judge in self.state.judges.items():
            if address.panel_id and self.panel_id(code) == address.panel_id:
                return judge
        judges = self.state.judges.values()
        judge_of_link = next((judge for judge in judges if address.link and judge.link == address.link), None)
        if judge_of_link is not None and address.panel_id:
            if self.panel_id(judge_of_link.code):
                raise Refused("no_link")
            self._keep(judge_of_link.code, {"worker": address.panel_id})
        return judge_of_link

    async def enlist(
        self, token: str, *, link: str | None = None, kit: str | None = None, about: Mapping[str, str] | None = None
    ) -> Judge:
        number = len(self.state.judges) + 1
        code = draw_code()
        while code in self.state.judges:
            code = draw_code()
        keys = list(self.settings.trials.keys) if isinstance(self.settings, JudgesSettings) else []
        of_pairs = isinstance(self.material, TrialMaterial) and self.material.pool.of_pairs
        self._keep(code, about or {})
        await self.note(
            {
                "event": "joined",
                "judge": code,
                "session": hashed(token),
                "number": number,
                "link": link,
                "kit": kit,
                # Counterbalanced: the first is for "human". Of pairs the left is the first conversation's, "machine".
                "keys": keys if number % 2 and not of_pairs else keys[::-1],
                "steps": self._steps(),
                "end_code": self.settings.end.code or draw_code().upper(),
            }
        )
        return self.state.judges[code]

    async def entered(self, judge: Judge, parameters: Mapping[str, str | None]) -> None:
        """Keep what the address has beside the id where it is new: who comes again from a panel may have another
        assignment there. What was so at the end stays, for by that the judge was paid. Raises Refused."""
        kept = self.personal.get(judge.code, {})
        sent = self._address(None, None, parameters).parameters
        news = {name: value for name, value in sent.items() if kept.get(name) != value}
        if judge.ended is None and news:
            self._keep(judge.code, news)
            await self.written()

    async def loaded(self, judge: Judge) -> None:
        """Note a reload, and block the judge if the settings say so."""
        events = ["loaded"]
        if self.settings.judges.reload == "block" and judge.current is not None and judge.counted(judge.step):
            events.append("blocked")
        await self.note(*({"event": event, "judge": judge.code} for event in events))

    async def leave(self, judge: Judge) -> None:
        """Nothing of the judge counts any more; the files are without them once this process ends."""
        self.personal.pop(judge.code, None)
        await self.note({"event": "left", "judge": judge.code})
        if self.lobby is not None:
            self.lobby.stop(self.state.present.get(judge.code))

    async def answer(self, judge: Judge, step: int, answer: Any, *, at: str | None = None) -> Receipt:
        """Keep the answer to a step, on disk on return. Raises Refused out of turn, and BadAnswer."""
        if step < judge.step:
            await self.written()
            return Receipt(is_new=False, truth=self.material.truth(judge.steps[step]))
        current = judge.current
        if current is None or step > judge.step:
            raise Refused("not_yet")
        if self.state.closed:
            raise Refused("closed")
        event = {"event": "step", "judge": judge.code, "at": at or now(), "step": step, "kind": current["kind"]}
        try:
            kept, personal = self.checked(judge, current, answer)
        except ToldError as error:
            await self.note(event | {"event": "told", "said": error.text, "flags": error.flags})
            return Receipt(is_new=False, flags=error.flags)
        if event["kind"] == "consent":
            event["consent"] = judge.consent if judge.kit else self._begin["consent"]["sha256"]
        elif event["kind"] == "break":
            began, over = (datetime.fromisoformat(each) for each in (judge.answers[-1]["at"], event["at"]))
            event["seconds"] = round((over - began).total_seconds(), 3)
        self._keep(judge.code, personal)
        await self.note(event | kept)
        return Receipt(is_new=True, truth=self.material.truth(current))

    def checked(self, judge: Judge, step: Step, answer: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """What is kept of an answer, and what is personal of it. Raises Refused, BadAnswer and ToldError."""
        if not isinstance(answer, dict):
            raise BadAnswer("an answer is an object")
        match step["kind"]:
            case "consent":
                if not isinstance(answer.get("agree"), bool):
                    raise BadAnswer("agree: must be true or false")
                return {"agree": answer["agree"]}, {}
            case "questions" | "after" as kind:
                chosen = self.settings.questions
                # Nobody of a kit can be asked again: what its page let pass does not cost their other answers.
                required = chosen.required if judge.kit is None else []
                about = read_questions(chosen.before if kind == "questions" else chosen.after, required, answer)
                is_out = any(value in chosen.out.get(name, ()) for name, value in about.items())  # type: ignore[call-overload]
                return ({"screened": True}, {}) if is_out else ({}, about)
            case "instructions":
                return parsed(InstructionsAnswer, answer).model_dump(exclude_none=True), {}
            case "break":
                return {}, {}
            case "talk" | "test":  # its end, or that of the time in the lobby where nobody came
                assert self.lobby is not None
                result = self.lobby.result(judge)
                is_alone = self.lobby.meeting_of(judge.code) is None
                if result is None and not (is_alone and answer.get("nobody") is True):
                    raise Refused("not_yet")
                about = {name: value for name, value in answer.items() if name != "nobody"}
                return {step["kind"]: result, **self.material.read(judge, step, about)}, {}
        return self.material.read(judge, step, answer), {}

    def panel_id(self, code: str) -> str:
        return self._panel_ids.get(code, "")

    # what is written

    async def note(self, *events: dict[str, Any]) -> None:
        """Take events in; on return they are on disk."""
        for event in events:
            self._put({**event, "at": event.get("at") or now()})
        await self.written()

    def _put(self, event: dict[str, Any]) -> None:
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)  # what cannot be written never happened
        self.state.apply(event)
        self.store.put(self.folder / EVENTS, line)

    def _keep(self, code: str, about: Mapping[str, str]) -> None:
        if about:
            self.personal.setdefault(code, {}).update(about)
            if "worker" in about:
                self._panel_ids[code] = about["worker"]
            line = {"judge": code, "at": now(), "said": about}
            self.store.put(self.folder / PERSONAL, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    async def written(self) -> None:
        await self.store.written([self.folder / EVENTS, self.folder / PERSONAL])

    # lists

    def _steps(self) -> list[Step]:
        settings = self.settings
        chance = random.Random(secrets.token_bytes(16))
        before: list[Step] = [{"kind": "consent"}] if settings.texts.consent else []
        before += [{"kind": "questions"}] if settings.questions.before else []
        after: list[Step] = [{"kind": "after"}] if settings.questions.after else []
        seen = events.count_pages(self.state.judges.values(), self.away())
        steps = events.with_breaks(self.material.steps(seen, chance), settings.judges.break_every)
        return [*before, *steps, *after]

    def away(self) -> set[str]:
        oldest = datetime.now(UTC) - timedelta(hours=self.settings.judges.hours)
        at_it = [judge for judge in self.state.judges.values() if judge.ended is None and judge.kit is None]
        return {judge.code for judge in at_it if datetime.fromisoformat(judge.at) < oldest}


def view(study: Study, judge: Judge, at: int | None = None) -> dict[str, Any]:
    """The next step, or step ``at``, as JSON."""
    step = judge.current if at is None else judge.steps[at]
    if step is None or study.state.closed:
        return {"step": judge.step, "list": judge.code, **_end(study, judge)}
    at = judge.step if at is None else at
    page: dict[str, Any] = {"step": at, "list": judge.code, "kind": step["kind"]}
    settings = study.settings
    match step["kind"]:
        case "consent":
            return page | {"text": settings.texts.consent}
        case "questions" | "after" as kind:
            fields = settings.questions.before if kind == "questions" else settings.questions.after
            return page | {"fields": fields, "required": settings.questions.required}
        case "instructions":
            page |= {"text": settings.texts.instructions, **study.material.instructions(judge, step)}
        case "break":
            page |= {"number": judge.counted(at), "of": judge.counted()}
        case _:
            page |= {**study.material.show(judge, step), "number": judge.counted(at) + 1, "of": judge.counted()}
    following = [step for step in judge.steps[at + 1 :] if step["kind"] in ASKED][:AHEAD]
    return page | {"ahead": [f"media/{name}" for step in following for name in study.material.files(step)]}


def media_of(study: Study, judge: Judge) -> dict[str, Path]:
    return {name: path for step in judge.steps for name, path in study.material.files(step).items()}


def _end(study: Study, judge: Judge) -> dict[str, Any]:
    settings = study.settings
    kept = study.personal.get(judge.code, {})
    code = completion_code(judge, settings)
    address = settings.end.redirect if code else ""
    values = {name: kept.get(name, "") for name in ("worker", *settings.judges.parameters)}
    for name, value in {**values, "code": code}.items():
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    kind = "end" if judge.ended == "finished" else judge.ended or "closed"
    text = settings.texts.thanks if kind == "end" else ""
    page: dict[str, Any] = {"kind": kind, "text": text, "code": code, "redirect": address or None}
    if kind == "end" and not study.state.has_finished(judge):  # what they took part in does not count: they are told
        causes = {meeting.cause() for meeting in study.state.met(judge) if meeting is not None}
        page["note"] = "end_fault" if "fault" in causes else "end_uncounted"
    return page
