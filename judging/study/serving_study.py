"""A study while it is served: people join, answer a step, leave. An answer is on disk before its page goes on.

What a page shows of a step is in :mod:`judging.study.step_pages`, what is kept of its answer is the material's.
"""

import asyncio
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from agents.errors import InputError, StorageError
from judging.study.addresses import OpenedAddress, read_address
from judging.study.design.settings import JudgesSettings
from judging.study.kinds import lobby_of
from judging.study.log.codes import draw_code, hashed
from judging.study.log.files import read_links
from judging.study.log.participant_events import (
    AnswerReturned,
    Blocked,
    BreakOver,
    Consent,
    ConsentAnswered,
    EntryChanged,
    InstructionsRead,
    Joined,
    Left,
    PageLoaded,
    QuestionsAnswered,
    ScreenSeen,
    SessionBegan,
    SettingsChosen,
    StepAnswer,
    StudyClosed,
)
from judging.study.log.state import Judge, State, count_pages
from judging.study.log.steps import CheckStep, Instructions, MaterialStep, Page, Step, with_breaks
from judging.study.log.study_log import StudyLog
from judging.study.pages.material import Material
from judging.study.pages.page_answers import (
    BadAnswer,
    InstructionsAnswer,
    Refused,
    ToldError,
    parsed_answer,
    read_questions,
)
from judging.study.pages.trial_material import TrialMaterial
from judging.study.writing_checks import WritingChecks
from judging.trial_sets.studies_of_set import note_study
from serving.files.terminal import print_line
from serving.files.timestamps import now


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of an answer."""

    is_new: bool
    """Whether it was kept now; False where the step had been answered before, or must be answered anew."""
    flags: Sequence[str] = ()
    """Phrases that say why the step must be answered anew."""
    truth: list[str] | None = None
    """What was right, where the page shows it."""


class ServedStudy:
    """The study in ``folder``, which shows ``material``.

    The caller holds the study's lock; ``check`` may raise StorageError before each write where it is lost. Raises
    InputError where anything is missing, or is another than people of this study began with.
    """

    def __init__(self, folder: Path, material: Material, check: Callable[[], None]) -> None:
        self.folder = folder
        self.settings = material.settings
        self.material = material
        self.log = StudyLog(folder, check)
        self.state: State = self.log.state
        self.lobby = lobby_of(material, self.log)
        """Where people meet; None for a study in which nobody meets anybody."""
        material.refuse_other_set(self.state)
        self.writing = WritingChecks(folder, material)
        """The traces and checks of what participants write."""
        text = self.writing.consent
        self.consent = Consent(sha256=hashed(text), text=text)
        if self.writing.records:
            material.traces_consent = self.consent.sha256
        for problem in material.problems():
            raise InputError(f"{folder}: {problem}")

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError where nothing can be written any more."""
        writer = self.log.start()
        settings = self.settings.model_dump(mode="json", by_alias=True, exclude={"texts"})
        state = self.state
        if (settings, self.consent, self.material.sha256) != (state.settings, state.consent, state.sha256):
            self.log.put(SettingsChosen(at=now(), settings=settings, consent=self.consent, sha256=self.material.sha256))
        if state.judges:
            self._note_use()
        return writer

    def _note_use(self) -> None:
        """Note beside a trial set that this study's judges have begun with it, so that nothing replaces it."""
        if not isinstance(self.material, TrialMaterial):
            return
        try:
            note_study(self.material.pool.folder, self.folder, self.material.sha256)
        except StorageError as error:
            # A set in a folder where nothing can be written is not replaced there either.
            print_line(f"not noted beside the trials that this study uses them: {error}")

    async def close(self) -> None:
        """End what is going on, and delete who has left. Raises StorageError."""
        if self.lobby is not None:
            await self.lobby.close()
        await self.log.close()

    @property
    def cookie(self) -> str:
        """The name of the cookie, by which studies at one address are told apart."""
        return f"judge-{hashed(f'{self.state.began} {self.state.sha256}')[:8]}"

    def find(
        self,
        token: str | None,
        link: str | None = None,
        panel_id: str | None = None,
        *,
        code: str | None = None,
    ) -> Judge | None:
        """The participant of the browser that holds the ``token``, as far as they are whom its address is for.

        An address that names nobody is for the participant whose ``code`` the page has, or for whoever was here last.
        Raises Refused.
        """
        judge = None if not token else self.state.by_session.get(hashed(token))
        if judge is None:
            return None
        address = self._address(link, panel_id)
        is_other_page = code not in (None, judge.code) and not address.is_personal
        is_theirs = address.is_of(judge, self.log.panel_id(judge.code))
        return judge if is_theirs and not is_other_page else None

    async def join(
        self, link: str | None, panel_id: str | None, parameters: Mapping[str, str | None] | None = None
    ) -> tuple[Judge, str]:
        """A participant and their session's token. The same ``link`` or ``panel_id`` is the same participant.

        Raises Refused where nobody new may begin, and StorageError.
        """
        settings = self.settings.judges
        token = secrets.token_urlsafe(24)
        address = self._address(link, panel_id, parameters)
        if settings.entry == "links" and address.link not in read_links(self.folder):
            raise Refused("no_link")
        judge = self._judge_of(address)
        if judge is not None:
            await self.log.note(SessionBegan(judge=judge.code, session=hashed(token), at=now()))
            await self.entered(judge, parameters or {})
            await self.loaded(judge)
            return judge, token
        if (why := self._why_nobody_new()) is not None:
            raise Refused(why)
        finished = self._finished()
        absent = self.absent()
        at_it = sum(judge.ended is None and code not in absent for code, judge in self.state.judges.items())
        if finished + at_it >= settings.most:
            raise Refused("full")
        personal = dict(address.parameters)
        if address.panel_id:
            personal["worker"] = address.panel_id
        return await self.enlist(token, link=address.link, said=personal), token

    def why_not(self, link: str | None, panel_id: str | None) -> str | None:
        """Why somebody whose browser is not known cannot begin here: "closed" or "no_new"; None where they may try.

        Whoever has an address of their own, and has begun by it in another browser, goes on there. Raises Refused.
        """
        address = self._address(link, panel_id)
        for code, judge in self.state.judges.items():
            has_id = address.panel_id and self.log.panel_id(code) == address.panel_id
            if has_id or (address.link and judge.link == address.link):
                return None
        return self._why_nobody_new()

    def _why_nobody_new(self) -> str | None:
        """Why the study takes nobody new: "closed", or "no_new" by the lab's wish and where enough have finished."""
        if self.state.closed:
            return "closed"
        is_enough = self._finished() >= self.settings.judges.wanted
        if self.state.entry_stopped or is_enough or (self.lobby is not None and self.lobby.is_enough()):
            return "no_new"
        return None

    def _finished(self) -> int:
        return sum(map(self.state.has_finished, self.state.judges.values()))

    def _address(
        self, link: str | None, panel_id: str | None, parameters: Mapping[str, str | None] | None = None
    ) -> OpenedAddress:
        links = read_links(self.folder) if link else set[str]()
        return read_address(self.settings.judges, links, link, panel_id, parameters or {})

    def _judge_of(self, address: OpenedAddress) -> Judge | None:
        """The judge who has the id, or else the link. Raises Refused for a link of somebody with another id."""
        for code, judge in self.state.judges.items():
            if address.panel_id and self.log.panel_id(code) == address.panel_id:
                return judge
        judges = self.state.judges.values()
        judge_of_link = next((judge for judge in judges if address.link and judge.link == address.link), None)
        if judge_of_link is not None and address.panel_id:
            if self.log.panel_id(judge_of_link.code):
                raise Refused("no_link")
            self.log.keep(judge_of_link.code, {"worker": address.panel_id})
        return judge_of_link

    async def enlist(
        self, token: str, *, link: str | None = None, kit: str | None = None, said: Mapping[str, str] | None = None
    ) -> Judge:
        """Somebody new, with steps drawn for them; ``said`` is what is known of them by the address.

        ``link`` is the hash of a personal link's token, ``kit`` the id of the kit that gets the steps. Raises
        StorageError.
        """
        number = len(self.state.judges) + 1
        code = draw_code()
        while code in self.state.judges:
            code = draw_code()
        self.log.keep(code, said or {})
        if not self.state.judges:
            self._note_use()
        chance = random.Random(secrets.token_bytes(16))
        codeword = self.writing.codeword(chance)
        await self.log.note(
            Joined(
                judge=code,
                session=hashed(token),
                number=number,
                link=link,
                kit=kit,
                keys=self._keys(number),
                steps=self._steps(chance),
                end_code=self.settings.end.code or draw_code().upper(),
                at=now(),
                **({} if codeword is None else {"codeword": codeword}),
            )
        )
        return self.state.judges[code]

    def _keys(self, number: int) -> list[str]:
        """The keys for "human" and "machine" of the participant of a number; they are exchanged for every other one."""
        if not isinstance(self.settings, JudgesSettings):
            return []
        keys = list(self.settings.trials.keys)
        if isinstance(self.material, TrialMaterial) and self.material.pool.of_pairs:
            return keys[::-1]  # the left key says that the first conversation has the machine
        return keys if number % 2 else keys[::-1]

    async def entered(self, judge: Judge, parameters: Mapping[str, str | None]) -> None:
        """Keep what the address has beside the id where it is new.

        Who comes again from a panel may have another assignment there. What was so at the end stays, for by that the
        participant was paid. Raises Refused, StorageError.
        """
        personal = self.log.personal.get(judge.code, {})
        sent = self._address(None, None, parameters).parameters
        news = {name: value for name, value in sent.items() if personal.get(name) != value}
        if judge.ended is None and news:
            self.log.keep(judge.code, news)
            await self.log.written()

    async def loaded(self, judge: Judge) -> None:
        """Note a reload, and block the participant if the settings say so. Raises StorageError."""
        events: list[PageLoaded | Blocked] = [PageLoaded(judge=judge.code, at=now())]
        if self.settings.judges.reload == "block" and judge.current is not None and judge.counted(judge.step):
            events.append(Blocked(judge=judge.code, at=now()))
        await self.log.note(*events)

    async def leave(self, judge: Judge) -> None:
        """Nothing of the participant counts any more; the files are without them once this process ends."""
        self.log.personal.pop(judge.code, None)
        await self.log.note(Left(judge=judge.code, at=now()))
        if self.lobby is not None:
            self.lobby.stop(self.state.present.get(judge.code))

    async def set_entry(self, *, is_open: bool) -> None:
        """Let nobody new begin, or let them again; who has begun goes on. Raises StorageError."""
        if is_open == (self.state.entry_stopped is not None):
            await self.log.note(EntryChanged(at=now(), open=is_open))

    async def end(self) -> None:
        """Close the study: nobody may answer any more. Raises StorageError."""
        if not self.state.closed:
            await self.log.note(StudyClosed(at=now()))

    async def answer(self, judge: Judge, number: int, answer: Any, *, at: str | None = None) -> Receipt:
        """Keep the answer to the step of a number, on disk on return; ``at`` is when it was given, if not now.

        The answer to a step that was answered before changes nothing: a page that is not sure sends it again. Raises
        Refused out of turn, BadAnswer and StorageError.
        """
        if number < judge.step:
            await self.log.written()
            return Receipt(is_new=False, truth=self.material.truth(judge.steps[number]))
        step = judge.current
        if step is None or number > judge.step:
            raise Refused("not_yet")
        if self.state.closed:
            raise Refused("closed")
        when = at or now()
        try:
            event, said = self.checked(judge, number, answer, when)
        except ToldError as error:
            await self.log.note(
                AnswerReturned(
                    judge=judge.code, at=when, step=number, kind=step.kind, said=error.text, flags=error.flags
                )
            )
            return Receipt(is_new=False, flags=error.flags)
        self.log.keep(judge.code, said)
        await self.log.note(event)
        return Receipt(is_new=True, truth=self.material.truth(step))

    def checked(self, judge: Judge, number: int, answer: Any, at: str) -> tuple[StepAnswer, dict[str, str]]:
        """The event of an answer to the step of a number, and what the participant says of themselves in it.

        Nothing is kept yet. Raises Refused where a meeting goes on, BadAnswer and ToldError.
        """
        if not isinstance(answer, dict):
            raise BadAnswer("an answer is an object")
        step = judge.steps[number]
        if isinstance(step, MaterialStep):
            if step.kind in ("talk", "test"):
                return self._end_of_meeting(judge, number, answer, at), {}
            return self.material.read(judge, number, answer, at), {}
        if isinstance(step, CheckStep):
            return self.writing.read(judge, step, number, answer, at), {}
        if isinstance(step, Instructions):
            device = parsed_answer(InstructionsAnswer, answer).device
            seen = {} if device is None else {"device": ScreenSeen(touch=device.touch, screen=device.screen)}
            return InstructionsRead(judge=judge.code, at=at, step=number, kind="instructions", **seen), {}
        if step.kind == "break":
            before = judge.answers[-1].at if judge.answers else judge.joined
            seconds = round((datetime.fromisoformat(at) - datetime.fromisoformat(before)).total_seconds(), 3)
            return BreakOver(judge=judge.code, at=at, step=number, kind="break", seconds=seconds), {}
        if step.kind == "consent":
            return self._consent(judge, number, answer, at), {}
        return self._questions(judge, step, number, answer, at)

    def _end_of_meeting(self, judge: Judge, number: int, answer: dict[str, Any], at: str) -> StepAnswer:
        """The end of a meeting, or of the time in the lobby where nobody came."""
        assert self.lobby is not None
        meeting = self.lobby.result(judge)
        is_alone = self.lobby.meeting_of(judge.code) is None
        if meeting is None and not (is_alone and answer.get("nobody") is True):
            raise Refused("not_yet")
        said = {name: value for name, value in answer.items() if name != "nobody"}
        return self.material.read(judge, number, said, at, meeting)

    def _consent(self, judge: Judge, number: int, answer: dict[str, Any], at: str) -> ConsentAnswered:
        agree = answer.get("agree")
        if not isinstance(agree, bool):
            raise BadAnswer("agree: must be true or false")
        if not judge.kit and answer.get("consent", self.consent.sha256) != self.consent.sha256:
            raise Refused("not_yet")  # the page shows an earlier text, and gets the one in force
        # Who has a kit saw the text that was in force when the kit was made.
        consent = judge.consent if judge.kit else self.consent.sha256
        return ConsentAnswered(judge=judge.code, at=at, step=number, kind="consent", consent=consent, agree=agree)

    def _questions(
        self, judge: Judge, step: Page, number: int, answer: dict[str, Any], at: str
    ) -> tuple[QuestionsAnswered, dict[str, str]]:
        questions = self.settings.questions
        # Nobody of a kit can be asked again: what its page let pass does not cost their other answers.
        required = questions.required if judge.kit is None else []
        kind: Literal["questions", "after"] = "questions" if step.kind == "questions" else "after"
        fields: Sequence[str] = questions.before if kind == "questions" else questions.after
        said = read_questions(fields, required, answer)
        if any(said.get(name) in values for name, values in questions.out.items()):
            return QuestionsAnswered(judge=judge.code, at=at, step=number, kind=kind, screened=True), {}
        return QuestionsAnswered(judge=judge.code, at=at, step=number, kind=kind), said

    def _steps(self, chance: random.Random) -> list[Step]:
        settings = self.settings
        before: list[Step] = []
        if settings.texts.consent:
            before.append(Page(kind="consent"))
        if settings.questions.before:
            before.append(Page(kind="questions"))
        after: list[Step] = [Page(kind="after")] if settings.questions.after else []
        seen = count_pages(self.state.judges.values(), self.absent())
        drawn = self.writing.with_questions(self.material.steps(seen, chance), chance)
        steps = with_breaks(drawn, settings.judges.break_every)
        return [*before, *steps, *after]

    def absent(self) -> set[str]:
        """The codes of those who have done nothing for ``judges.hours``: their trials go to others.

        Who has a kit is never absent, for nothing is heard of a kit until it comes back.
        """
        oldest = datetime.now(UTC) - timedelta(hours=self.settings.judges.hours)
        at_it = [judge for judge in self.state.judges.values() if judge.ended is None and judge.kit is None]
        return {judge.code for judge in at_it if datetime.fromisoformat(judge.last_seen) < oldest}
