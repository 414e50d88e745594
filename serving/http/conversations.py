"""Conversations of a person with an agent over HTTP.

They are held in memory under random ids. One that nobody uses for an hour is forgotten; with ``--out`` its record
stays.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from agents import answers
from agents.errors import AgentStoppedError, AnswerError, InputError
from agents.stimuli import ConversationStimulus, PseudoDialogue
from agents.stimulus_parts import WHOLE, Word
from serving.conversations.dialogue import PERSON_NAME, BurstDialogue, Dialogue, DialogueError, FlaggedMessage
from serving.conversations.scenario import QUIET_S, DelaySettings
from serving.http.bodies import Body, Seed
from serving.http.errors import POSTED, ApiError, agent_failed, documented, failure, unreadable
from serving.http.guard import unless_gone
from serving.http.not_kept import NOT_KEPT_HEADER, refuse_not_kept
from serving.http.service import Service
from serving.runs.records import Record, RecordedVerdict

MOST_TEXT = 2000  # characters of a message
MOST_EXCHANGES = 200  # messages of a conversation
MOST_PSEUDO = 200  # turns that an agent writes for both before a conversation
LONGEST_WAIT = 30.0  # seconds that a request may wait for a message
STATUS = {"busy": 409, "ended": 409, "not_open": 409}
MessageText = Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
ConversationId = Annotated[str, Path(alias="id", examples=["5d41402abc4b2a76b9719d911017c592"])]


def _person(who: str) -> str:
    if PERSON_NAME.fullmatch(who) is None:
        raise PydanticCustomError("who", 'a person is called "human" or "human:NAME", without spaces')
    return who


def _says_something(text: str) -> str:
    if answers.is_blank(text):
        raise PydanticCustomError("text", "shows nothing: it is of blanks and invisible characters alone")
    return text


def _short(pseudo: PseudoDialogue | None) -> PseudoDialogue | None:
    if pseudo is not None and pseudo.topics * pseudo.turns > MOST_PSEUDO:
        raise PydanticCustomError("pseudo", f"the turns of all topics must not be more than {MOST_PSEUDO}")
    return pseudo


class OpenRequest(Body):
    """Open a conversation. Fields that are left out are drawn from the seed."""

    agent: str = Field(max_length=200, examples=["eliza"])
    """One of GET /agents that answers conversation."""
    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The stimulus's id; random by default. With the same id and seed the same is drawn."""
    topic: Word | None = None
    """What the conversation is about."""
    names: tuple[Word, Word] | None = None
    """The names of A and of B."""
    personas: tuple[MessageText, MessageText] | None = None
    """What A and B are like, such as "sarcastic and witty"."""
    opener: MessageText | None = None
    """The first message, whoever says it."""
    who_starts: Literal["A", "B"] | None = None
    """The side that writes the first message."""
    exchanges: Annotated[int, Field(strict=True, ge=1, le=MOST_EXCHANGES), WHOLE] = 24
    """The number of messages, those of both sides together."""
    mode: Literal["ping-pong", "burst"] = "ping-pong"
    """By turns ("ping-pong"), or both write whenever they like ("burst"): `GET` with `after` then brings the agent's
    messages when they are due."""
    pseudo: Annotated[PseudoDialogue | None, AfterValidator(_short)] = None
    """Lines that the agent writes itself beforehand."""
    delays: DelaySettings = Field(default_factory=DelaySettings)
    """How long the agent takes to write a message. A burst dialogue waits for it; by turns it is only recorded."""
    quiet_s: float = Field(QUIET_S, strict=True, ge=0, le=3600)
    """In a burst dialogue: the seconds that the person must be quiet before the agent is asked."""
    person: Literal["A", "B"] = "A"
    """The person's side."""
    who: Annotated[str, AfterValidator(_person)] = Field(
        "human", json_schema_extra={"pattern": f"^{PERSON_NAME.pattern}$"}
    )
    """What the record calls the person: "human", or "human:" and a name without spaces."""
    seed: Seed | None = None
    """The run's seed; the server's own by default."""


class MessageRequest(Body):
    """Send a message."""

    text: Annotated[MessageText, AfterValidator(_says_something)] = Field(examples=["I like books."])
    """What the person says."""


class ShownMessage(answers.Message):
    """A message with the flags of the conversation filters."""

    flags: list[RecordedVerdict]
    """What the filters found in it; none of it keeps the message back."""


class Messages(BaseModel):
    """New messages: the person's and, by turns, the agent's."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    messages: list[ShownMessage]
    """In their order."""
    ended: bool
    """Whether all messages of the conversation are sent."""


class Conversation(Messages):
    """A conversation as it stands."""

    id: str
    """It cannot be guessed: who has it can read the conversation and speak in it."""
    agent: str
    """The agent's name on this server."""
    person: Literal["A", "B"]
    """The person's side."""
    mode: Literal["ping-pong", "burst"]
    """By turns, or both whenever they like."""
    topic: str
    """What it is about, as given or drawn."""
    names: tuple[str, str]
    """The names of A and of B, as given or drawn."""
    exchanges: int
    """The number of messages, those of both sides together."""
    forgotten_after: float
    """Seconds without use after which the conversation is forgotten."""
    record: Record | None = None
    """The record so far; only in the answer to `GET`."""


class OpenConversations:
    """At most ``count`` conversations by their ids. One that is not used for ``idle`` seconds is closed and forgotten;
    ``clock`` returns seconds."""

    def __init__(self, count: int = 1000, idle: float = 3600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self.idle = idle
        self._clock = clock
        self._kept: dict[str, tuple[Dialogue, float]] = {}  # with the time of the last use, the longest unused first

    def add(self, dialogue: Dialogue) -> str:
        """Hold a conversation; returns its new id, which cannot be guessed. Raises ApiError 429 where there are too
        many."""
        self._forget()
        if len(self._kept) >= self._count:
            _, oldest = next(iter(self._kept.values()))
            later = str(max(1, round(oldest + self.idle - self._clock())))
            message = "there are as many conversations as there may be; delete some that are over"
            raise ApiError(429, "too_many_conversations", message, headers={"retry-after": later})
        key = secrets.token_hex(16)
        self._kept[key] = (dialogue, self._clock())
        return key

    def use(self, key: str) -> Dialogue:
        """The conversation with the id ``key``, which is used now. Raises ApiError 404."""
        dialogue = self._taken(key)
        self._kept[key] = (dialogue, self._clock())
        return dialogue

    def remove(self, key: str) -> None:
        """Close and forget the conversation with the id ``key``. Raises ApiError 404."""
        self._taken(key).close()

    def _taken(self, key: str) -> Dialogue:
        self._forget()
        if key not in self._kept:
            message = f"there is no such conversation; after {self.idle:g} s without use one is forgotten"
            raise ApiError(404, "unknown_conversation", message)
        return self._kept.pop(key)[0]

    def _forget(self) -> None:
        since = self._clock() - self.idle
        for key in [key for key, (_, used) in self._kept.items() if used <= since]:
            self._kept.pop(key)[0].close()


def router(service: Service, kept: OpenConversations) -> APIRouter:
    """The routes below ``/conversations`` of a service; ``kept`` holds the conversations."""
    routes = APIRouter(tags=["conversations"])

    @routes.post(
        "/conversations",
        status_code=201,
        summary="Open a conversation with an agent",
        response_model_exclude_unset=True,
        responses=POSTED | documented(502),
        dependencies=[Depends(refuse_not_kept)],
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def open_conversation(asking: OpenRequest, request: Request) -> Conversation:
        """If the agent speaks first, its message is in the answer."""
        stimulus = _stimulus(asking)
        service.check(asking.agent, stimulus)
        with service.queued(asking.agent), _as_api_errors(asking.agent):
            deadline = await unless_gone(request, service.loaded(asking.agent))
            kind = BurstDialogue if asking.mode == "burst" else Dialogue
            dialogue = kind(
                service.scheduler,
                asking.agent,
                stimulus,
                seed=asking.seed,
                person=asking.person,
                who=asking.who,
                delays=asking.delays,
                quiet_s=asking.quiet_s,
            )
            key = kept.add(dialogue)
            try:
                await unless_gone(request, _kept(service, dialogue, dialogue.open(deadline)))
            except BaseException:
                kept.remove(key)  # nobody knows its id
                raise
        return _shown(key, dialogue, kept.idle)

    @routes.post(
        "/conversations/{id}/messages",
        summary="Send a message; the agent's answer comes back",
        responses=POSTED | documented(409, 502),
        dependencies=[Depends(refuse_not_kept)],
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def say(key: ConversationId, message: MessageRequest, request: Request) -> Messages:
        """After an error the conversation is as it was before. In a burst dialogue a message is taken at once, and the
        agent's messages come by `GET` with `after`."""
        dialogue = kept.use(key)
        with service.queued(dialogue.agent), _as_api_errors(dialogue.agent):
            before = len(dialogue.transcript())
            await unless_gone(request, _kept(service, dialogue, dialogue.say(message.text, service.options.deadline)))
            return _new(dialogue, dialogue.transcript()[before:])

    @routes.get(
        "/conversations/{id}/messages",
        summary="The messages after the first ones, as soon as there is one",
        responses=documented(502),
    )
    async def later_messages(
        key: ConversationId,
        request: Request,
        after: Annotated[
            int, Query(ge=0, le=MOST_EXCHANGES, description="How many messages the client has already.")
        ] = 0,
        wait: Annotated[
            float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a further message.")
        ] = 0.0,
    ) -> Messages:
        """A failure of a burst dialogue's agent comes once; it is asked again when the person writes again."""
        dialogue = kept.use(key)
        with _as_api_errors(dialogue.agent):
            messages = await unless_gone(request, dialogue.after(after, wait))
            if isinstance(dialogue, BurstDialogue) and any(new.message.agent == dialogue.agent for new in messages):
                await asyncio.shield(service.keep(dialogue))
            return _new(dialogue, messages)

    @routes.get(
        "/conversations/{id}",
        summary="All messages, and the record",
        response_model=Conversation,
    )
    async def read(key: ConversationId) -> Response:
        dialogue = kept.use(key)
        record = await dialogue.record(service.headers[dialogue.agent])
        content = {**_shown(key, dialogue, kept.idle).model_dump(exclude_unset=True), "record": orjson.Fragment(record)}
        return Response(orjson.dumps(content), media_type="application/json")

    @routes.delete("/conversations/{id}", summary="Forget a conversation", status_code=204)
    async def forget(key: ConversationId) -> None:
        kept.remove(key)

    return routes


async def _kept(service: Service, dialogue: Dialogue, saying: Awaitable[Any]) -> None:
    await saying
    if dialogue.transcript():
        await asyncio.shield(service.keep(dialogue))


def _shown(key: str, dialogue: Dialogue, idle: float) -> Conversation:
    stimulus = dialogue.stimulus
    assert stimulus.topic is not None
    assert stimulus.names is not None
    return Conversation(
        id=key,
        agent=dialogue.agent,
        person="B" if dialogue.person else "A",
        mode=stimulus.mode,
        topic=stimulus.topic,
        names=stimulus.names,
        exchanges=stimulus.exchanges,
        forgotten_after=idle,
        messages=[_flagged(message) for message in dialogue.transcript()],
        ended=dialogue.ended,
    )


def _stimulus(asking: OpenRequest) -> ConversationStimulus:
    fields = asking.model_dump(exclude={"agent", "person", "who", "seed", "delays", "quiet_s"})
    fields["id"] = asking.id or f"conversation-{secrets.token_hex(8)}"
    try:
        return ConversationStimulus(task="conversation", type="HM", **fields)
    except ValidationError as error:
        raise unreadable(error) from None


@contextmanager
def _as_api_errors(agent: str) -> Iterator[None]:
    try:
        yield
    except DialogueError as error:
        raise ApiError(STATUS[error.code], error.code, str(error)) from None
    except InputError as error:
        raise ApiError(422, "unsupported_pseudo", str(error)) from None
    except AnswerError as error:
        raise failure(agent, error.code) from None
    except AgentStoppedError:
        raise agent_failed(agent, "has stopped") from None


def _new(dialogue: Dialogue, messages: Sequence[FlaggedMessage]) -> Messages:
    return Messages(messages=[_flagged(message) for message in messages], ended=dialogue.ended)


def _flagged(flagged: FlaggedMessage) -> ShownMessage:
    flags = [RecordedVerdict(filter=flag.filter, rejected=flag.rejected, found=flag.found) for flag in flagged.flags]
    return ShownMessage(**flagged.message.model_dump(), flags=flags)
