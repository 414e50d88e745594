"""Conversations of a person with an agent, over HTTP: one is opened, messages are sent to it, and it has a record.

A conversation is known by a random id of 128 bits, which only who opened it has been told. It is kept in memory, and
forgotten when nobody has used it for a while; how many there are is bounded.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Path, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.config import JsonDict

from agents import answers
from agents.errors import AgentStoppedError, AnswerError
from agents.stimuli import ConversationStimulus, Word
from serving.conversations.dialogue import PERSON, Dialogue, DialogueError, FlaggedMessage
from serving.http.bodies import Body, invalid, parse
from serving.http.errors import ApiError
from serving.http.failed_answers import documented, failure
from serving.http.native import request_body, unless_gone
from serving.http.service import Service
from serving.runs.records import Record, RecordedVerdict

MOST_TEXT = 2000  # characters of a message
MOST_EXCHANGES = 200
Part = Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
REMEMBERED = 10_000  # ids of conversations that were forgotten
STATUS = {"busy": 409, "ended": 409, "not_open": 409, "bad_message": 422}


@dataclass(frozen=True, slots=True)
class Limits:
    """``count`` conversations at once, each forgotten once it was not used for ``idle`` seconds."""

    count: int = 1000
    idle: float = 3600.0


HEARD: list[JsonValue] = [
    {"turn": turn, "speaker": name, "agent": agent, "text": text, "raw": None, "at": None, "finish": finish,
     "delay_s": None, "flags": []}
    for turn, name, agent, text, finish in (
        (0, "Kate", "human", "I like books.", None),
        (1, "Maria", "eliza", "Hello Kate. Since when do you like books?", "stop"),
    )
]  # fmt: skip
STANDS: JsonDict = {
    "id": "5d41402abc4b2a76b9719d911017c592",
    "agent": "eliza",
    "person": "A",
    "topic": "books",
    "names": ["Kate", "Maria"],
    "exchanges": 24,
    "messages": [],
    "ended": False,
    "forgotten_after": 3600.0,
}


def _person(who: str) -> str:
    """By Python's own idea of spaces, which has some more than that of pydantic's patterns."""
    if PERSON.fullmatch(who) is None:
        raise ValueError('a person is called "human" or "human:NAME", without spaces')
    return who


class TalkRequest(Body):
    """Open a conversation. What is left open is drawn from the seed."""

    agent: str = Field(max_length=200, examples=["eliza"])
    """One of GET /v1/agents that answers conversation."""
    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Of the stimulus; a random one, if none is given. With the same id and seed the same is drawn."""
    topic: Word | None = None
    names: tuple[Word, Word] | None = None
    """A's and B's."""
    personas: tuple[Part, Part] | None = None
    """A's and B's."""
    opener: Part | None = None
    """The first message, whoever says it."""
    who_starts: Literal["A", "B"] | None = None
    exchanges: int = Field(24, ge=1, le=MOST_EXCHANGES)
    """So many messages, of both together."""
    person: Literal["A", "B"] = "A"
    """The person's side."""
    who: Annotated[str, Field(pattern=f"^{PERSON.pattern}$"), AfterValidator(_person)] = "human"
    """What the record calls the person: "human", or "human:" and a name."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    """The run's seed; the server's own, if none is given."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "eliza", "topic": "books", "who_starts": "A", "seed": 7}]}
    )


LINKS = {
    name: {"operationId": name, "parameters": {"talk": "$response.body#/id"}}
    for name in ("say_to_talk", "read_talk", "forget_talk")
}  # what may be done with the id that opening a conversation gives, for readers of the OpenAPI document
TalkId = Annotated[str, Path(examples=["5d41402abc4b2a76b9719d911017c592"])]


class MessageRequest(Body):
    """Say something."""

    text: Part

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "I like books."}]})


class Spoken(answers.Message):
    """A message, and what the filters of conversations found in it; nothing follows from that."""

    flags: list[RecordedVerdict]


class Messages(BaseModel):
    """What has been said by this request: the person's message and the agent's, if it is not over before that."""

    messages: list[Spoken]
    ended: bool
    """Whether all exchanges have been made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"messages": HEARD, "ended": False}]})


class Talk(Messages):
    """A conversation as it stands."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_extra={"examples": [STANDS]})

    id: str
    """Not to be guessed: who has it can read the conversation and speak in it."""
    agent: str
    person: Literal["A", "B"]
    topic: str
    names: tuple[str, str]
    exchanges: int
    forgotten_after: float
    """Seconds without use after which the conversation is forgotten."""


class RecordedTalk(Talk):
    """A conversation as it stands, with its record."""

    record: Record


@dataclass(slots=True, eq=False)
class _Open:
    dialogue: Dialogue
    agent: str
    used: float
    at_work: int = 0


class Talks:
    """The conversations there are, by their ids, the longest unused first."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._forgotten: OrderedDict[str, None] = OrderedDict()

    def add(self, dialogue: Dialogue, agent: str) -> str:
        """Keep a conversation; its id. Raises ApiError 429 if there are as many as there may be."""
        self._forget()
        if len(self._open) >= self.limits.count:
            oldest = next(iter(self._open.values())).used
            later = str(max(1, round(oldest + self.limits.idle - self._clock())))
            message = "there are as many conversations as there may be; delete some that are over"
            raise ApiError(429, "too_many_conversations", message, headers={"retry-after": later})
        talk = secrets.token_hex(16)
        self._open[talk] = _Open(dialogue, agent, self._clock())
        return talk

    @contextmanager
    def used(self, talk: str) -> Iterator[_Open]:
        """A conversation, which is not forgotten while the block lasts. Raises ApiError 404 or 410."""
        found = self._find(talk)
        found.at_work += 1
        try:
            yield found
        finally:
            found.at_work -= 1
            found.used = self._clock()
            if talk in self._open:
                self._open.move_to_end(talk)

    def remove(self, talk: str) -> None:
        """Forget a conversation. Raises ApiError 404 or 410."""
        self._find(talk)
        self.discard(talk)

    def discard(self, talk: str) -> None:
        """Forget a conversation, if there is one."""
        self._open.pop(talk, None)

    def _find(self, talk: str) -> _Open:
        self._forget()
        found = self._open.get(talk)
        if found is not None:
            return found
        if talk in self._forgotten:
            raise ApiError(410, "forgotten", f"nobody used this conversation for {self.limits.idle:g} s: open another")
        raise ApiError(404, "unknown_conversation", "there is no such conversation")

    def _forget(self) -> None:
        """Forget what nobody has used for too long."""
        since = self._clock() - self.limits.idle
        for talk, one in list(self._open.items()):
            if one.used > since:
                break
            if not one.at_work:
                del self._open[talk]
                self._forgotten[talk] = None
        while len(self._forgotten) > REMEMBERED:
            self._forgotten.popitem(last=False)


def router(service: Service, limits: Limits | None = None) -> APIRouter:
    """The routes, for one service."""
    routes = APIRouter(tags=["conversations"])
    talks = Talks(limits or Limits(), time.monotonic)

    @routes.post(
        "/v1/conversations",
        status_code=201,
        summary="Open a conversation with an agent",
        openapi_extra=request_body(TalkRequest),
        responses=documented(429, 502) | {201: {"links": LINKS}},
    )
    async def open_talk(request: Request) -> Talk:
        """If the agent speaks first, its message is in the answer."""
        asked = parse(TalkRequest, await request.body())
        stimulus = _stimulus(asked)
        service.check(asked.agent, stimulus)
        with service.place(asked.agent), _told(asked.agent):
            until = service.until()
            await unless_gone(request, service.loaded(asked.agent, until))
            dialogue = Dialogue(
                service.scheduler, asked.agent, stimulus, seed=asked.seed, person=asked.person, who=asked.who
            )
            talk = talks.add(dialogue, asked.agent)
            try:
                with talks.used(talk) as found:
                    await unless_gone(request, dialogue.open(service.left(until)))
                    return _talk(talks, talk, found)
            except BaseException:
                talks.discard(talk)  # nobody has been told its id
                raise

    @routes.post(
        "/v1/conversations/{talk}/messages",
        operation_id="say_to_talk",
        summary="Say something, and hear the agent's answer",
        openapi_extra=request_body(MessageRequest),
        responses=documented(409, 410, 502),
    )
    async def say(talk: TalkId, request: Request) -> Messages:
        """After an error the conversation is as it was before: the same or another message may be sent. Where no answer
        came at all, because the connection broke, `GET` tells whether the message was taken."""
        text = parse(MessageRequest, await request.body()).text
        with talks.used(talk) as found, service.place(found.agent), _told(found.agent):
            dialogue = found.dialogue
            before = len(dialogue.transcript())
            await unless_gone(request, dialogue.say(text, service.options.deadline))
            fresh = dialogue.transcript()[before:]
            return Messages(messages=[_spoken(one) for one in fresh], ended=dialogue.ended)

    @routes.get(
        "/v1/conversations/{talk}",
        operation_id="read_talk",
        summary="What has been said, and the record of it",
        response_model=RecordedTalk,
        responses=documented(410),
    )
    async def read(talk: TalkId) -> Response:
        with talks.used(talk) as found:
            record = found.dialogue.record(service.headers[found.agent])
            shown = _talk(talks, talk, found).model_dump()
        return Response(orjson.dumps({**shown, "record": orjson.Fragment(record)}), media_type="application/json")

    @routes.delete(
        "/v1/conversations/{talk}",
        operation_id="forget_talk",
        summary="Forget a conversation",
        status_code=204,
        responses=documented(410),
    )
    async def forget(talk: TalkId) -> Response:
        talks.remove(talk)
        return Response(status_code=204)

    return routes


def _stimulus(asked: TalkRequest) -> ConversationStimulus:
    """What the conversation is about. Raises ApiError."""
    fields = asked.model_dump(exclude={"agent", "id", "person", "who", "seed"})
    try:
        return ConversationStimulus(
            id=asked.id or f"talk-{secrets.token_hex(8)}", task="conversation", type="HM", **fields
        )
    except ValidationError as error:
        raise invalid(error) from None


@contextmanager
def _told(agent: str) -> Iterator[None]:
    """What goes wrong in a dialogue, as an ApiError."""
    try:
        yield
    except DialogueError as error:
        raise ApiError(STATUS[error.code], error.code, str(error)) from None
    except AnswerError as error:
        raise failure(agent, error.code) from None
    except AgentStoppedError:
        raise ApiError(503, "agent_failed", f"agent {agent} has stopped; GET /ready says why") from None


def _talk(talks: Talks, talk: str, found: _Open) -> Talk:
    dialogue = found.dialogue
    stimulus = dialogue.stimulus
    assert stimulus.topic is not None
    assert stimulus.names is not None
    return Talk(
        id=talk,
        agent=found.agent,
        person="B" if dialogue.person else "A",
        topic=stimulus.topic,
        names=stimulus.names,
        exchanges=stimulus.exchanges,
        forgotten_after=talks.limits.idle,
        messages=[_spoken(one) for one in dialogue.transcript()],
        ended=dialogue.ended,
    )


def _spoken(said: FlaggedMessage) -> Spoken:
    flags = [RecordedVerdict(filter=one.filter, rejected=one.rejected, found=one.found) for one in said.flags]
    return Spoken(**said.message.model_dump(), flags=flags)


MODELS: tuple[type[BaseModel], ...] = (TalkRequest, MessageRequest)
