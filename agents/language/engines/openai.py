"""The engine of servers with OpenAI's interface. Servers differ in what they take, so that refusals and replies are
read."""

import asyncio
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agents.contract import LATER, Address
from agents.errors import AnswerError
from agents.language.engines.clients import RENAMED, ServerEngine, encoded, log
from agents.language.engines.reasoning import Thinks, parted
from agents.language.engines.server_replies import ServerReply, ServerText
from agents.language.engines.server_settings import ClientSettings, KeyVariable
from agents.language.engines.text_request import ChatMessage, Finish, Sampling, TextRequest


class ServerSettings(ClientSettings):
    """A server with OpenAI's interface."""

    base_url: Address = "https://api.openai.com/v1"
    """The server's address up to and including the version, as in http://localhost:8000/v1."""
    key_variable: KeyVariable = "OPENAI_API_KEY"
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""


class SeededSettings(ServerSettings):
    """For models that draw texts."""

    seed_bits: int = Field(53, ge=0, le=53)
    """How many bits of an attempt's seed are sent, the upper ones; 0: none. What servers keep: docs/servers.md."""


class ChatSettings(SeededSettings):
    """What servers' models that chat do differently: the name of a limit, and how texts hold thoughts."""

    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of tokens is called in chats; where a server refuses or drops the name, the other is sent."""
    reasoning: Thinks = Field("marks", json_schema_extra=LATER)
    """Where a text has the model's thoughts: between marks (<think>), before one (opened by the prompt), or nowhere."""


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)


class _Part(_Reply):
    text: str | None = None


class _Message(_Reply):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None  # the same, at other servers


class Choice(_Reply):
    """A text of a reply: a completion's ``text`` or a chat's ``message``."""

    text: str | None = None
    """The text of a completion."""
    message: _Message | None = None
    """The message of a chat."""
    finish_reason: str | None = None
    """Why the text ended."""

    def written(self) -> str | None:
        """The text; "" after mere reasoning or the use of a tool; None if there is no text at all."""
        if self.message is None:
            return self.text
        content = self.message.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        return content or self.message.refusal or ""

    def thought(self) -> str | None:
        """What the server sent apart as the model's thoughts, or None."""
        if self.message is None:
            return None
        fields = (self.message.reasoning_content, self.message.reasoning)
        return next((field for field in fields if isinstance(field, str) and field), None)

    def is_filtered(self) -> bool:
        """Whether the server or the model declined to answer."""
        return self.finish_reason == "content_filter" or bool(self.message and self.message.refusal)


class TextReply(ServerReply):
    """The used fields of a reply to a text or a chat."""

    choices: Annotated[list[Choice], Field(min_length=1)]
    """The texts; one is asked for."""
    system_fingerprint: Any = None
    """The server's own mark of its configuration."""


class _Vector(_Reply):
    index: int
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class VectorReply(_Reply):
    """The used fields of a reply to texts that are to be embedded."""

    data: list[_Vector]
    """The vectors, in any order."""


MOST_STOPS = 4
"""How many stops are sent, as OpenAI takes no more. Texts are cut at the others here."""
NO_SYSTEM = re.compile(r"system (role|message|prompt)s? (is |are )?not supported|developer instruction", re.IGNORECASE)
"""A refused system message, in the words of the chat templates of Gemma and others, and of Google's server."""
TEMPLATE = 60
"""The most tokens of a chat template around a message."""
BEYOND = 1
"""Tokens over the limit that show nothing, as some servers count the one that ends the text."""


class OpenAIEngine(ServerEngine[ServerSettings]):
    """Completions, chats (also about images) and embeddings.

    It learns as it goes: that the model knows no system's messages, that it refuses a parameter, that a limit's name is
    dropped, that pictures are left out. What was learnt holds for all later requests of the process.
    """

    package = "openai"
    extra = "openai"
    client = "AsyncOpenAI"
    used_up = "insufficient_quota"

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._takes_system = True  # as far as is known, as is the next
        self._sees_pictures: bool | None = None

    def _new_client(self) -> Any:
        self._checking = asyncio.Lock()  # of the running event loop
        return super()._new_client()

    async def generate(self, request: TextRequest, seed: int) -> ServerText:
        """The text of a completion or chat. Raises AnswerError, also where the server left a picture out."""
        reply, tries = await self._limited_reply(request, seed)
        if any(message.image for message in request.messages):
            await self._check_pictures(request, reply.count("prompt_tokens"))
        choice = reply.choices[0]
        raw = choice.written()
        if raw is None:
            raise self._bad_reply("the reply holds no text")
        raw = self._cleared(raw)
        finish: Finish = "length" if choice.finish_reason == "length" else "stop"
        sent = choice.thought()
        parts = parted(raw, self._thinks(request), is_whole=finish == "stop", has_thought=bool(sent))
        thoughts = [thought for thought in (sent, parts.thought) if thought]
        return self._text(
            reply,
            request.sampling,
            parts,
            "filtered" if choice.is_filtered() else finish,
            self._cleared("\n\n".join(thoughts)).strip(),
            raw=raw,
            prompt_tokens=reply.count("prompt_tokens"),
            tokens=reply.count("completion_tokens"),
            fingerprint=self._name(reply.system_fingerprint),
            tries=tries,
            reasoning_tokens=reply.count("completion_tokens_details", "reasoning_tokens"),
            ignored=self._ignored(reply, request, parts.answer) or None,
        )

    def _thinks(self, request: TextRequest) -> Thinks:
        settings = self._settings
        return settings.reasoning if isinstance(settings, ChatSettings) and request.prompt is None else "marks"

    async def _limited_reply(self, request: TextRequest, seed: int) -> tuple[TextReply, int]:
        """The reply and its tries. One beyond its limit of tokens is asked for again with the limit's other name, which
        is kept: some servers drop the name that they do not know."""
        tries = 0
        while True:
            name = self._limit_name(self._limit_field(request))
            reply, more = await self._reply_to(request, seed)
            tries += more
            other = RENAMED[name]
            is_beyond = request.prompt is None and _is_beyond(reply, request.sampling.limit)
            if not is_beyond or other in self._refused:
                return reply, tries
            if name not in self._refused:  # of requests under way at once the first says it
                log.warning("%s drops %s: %s is sent instead", self._settings.model, name, other)
            self._refused.add(name)

    async def _reply_to(self, request: TextRequest, seed: int) -> tuple[TextReply, int]:
        options = self._options(request, seed)
        if request.prompt is not None:
            return await self._post("completions", TextReply, prompt=request.prompt, **options)
        chat = self._sent(request)
        try:
            messages = [openai_message(message) for message in chat]
            return await self._post("chat.completions", TextReply, messages=messages, **options)
        except AnswerError as error:
            if chat[0].role != "system" or not NO_SYSTEM.search(str(error)):
                raise
        if self._takes_system:
            log.warning("%s takes no system message: the user's first message begins with it", self._settings.model)
        self._takes_system = False
        return await self._reply_to(request, seed)

    def _sent(self, request: TextRequest) -> Sequence[ChatMessage]:
        return request.messages if self._takes_system else request.without_system()

    def prompt_text(self, request: TextRequest) -> str:
        """The prompt as it is sent: without a system's message where the model takes none."""
        return super().prompt_text(replace(request, messages=tuple(self._sent(request))))

    async def _check_pictures(self, request: TextRequest, tokens: int | None) -> None:
        """Raises AnswerError if the server left the picture out. It is tested where ``tokens`` could be of the
        text alone; a token has 2 to 8 characters."""
        size = sum(len(message.text) for message in request.messages)
        if self._sees_pictures is None and tokens is not None and size / 8 <= tokens <= size / 2 + TEMPLATE:
            async with self._checking:
                if self._sees_pictures is None:
                    self._sees_pictures = await self._ask_about_pictures(request, tokens)
        if self._sees_pictures is False:
            why = "counts no tokens for a picture, and says the same of a red and a blue square"
            raise AnswerError("server_refused", f"{self._settings.base_url}: the model sees no pictures: it {why}")

    async def _ask_about_pictures(self, request: TextRequest, tokens: int) -> bool:
        without = tuple(replace(message, image=None) for message in request.messages)
        brief = replace(request.sampling, max_tokens=1, reasoning_tokens=0)
        reply, _ = await self._reply_to(replace(request, messages=without, sampling=brief), 0)
        if tokens > (reply.count("prompt_tokens") or 0):
            return True
        texts = []
        for color in ("red", "blue"):
            square = io.BytesIO()
            Image.new("RGB", (64, 64), color).save(square, "PNG")
            message = ChatMessage("user", "Which color does this picture have?", square.getvalue())
            question = TextRequest(messages=(message,), sampling=Sampling(temperature=0, max_tokens=20))
            reply, _ = await self._reply_to(question, 0)
            texts.append(reply.choices[0].written())
        return texts[0] != texts[1]

    async def embed(self, texts: Sequence[str], batch: int = 1024) -> list[list[float]]:
        """The vector of each of ``texts``, of which ``batch`` go into a request. Raises AnswerError."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            options = {"model": self._settings.model, "input": part, "encoding_format": "float"}
            reply, _ = await self._post("embeddings", VectorReply, **options)
            by_index = {vector.index: vector.embedding for vector in reply.data}
            if sorted(by_index) != list(range(len(part))):
                raise self._bad_reply(f"not a vector for each of {len(part)} texts")
            vectors += [by_index[position] for position in range(len(part))]
        if len({len(vector) for vector in vectors}) > 1:
            raise self._bad_reply("vectors of different lengths")
        return vectors

    def _ignored(self, reply: TextReply, request: TextRequest, text: str | None) -> tuple[str, ...]:
        """What the reply shows that the server ignored; ``text`` is without reasoning."""
        names = []
        if _is_beyond(reply, request.sampling.limit):
            names.append(self._limit_name(self._limit_field(request)))
        choice = reply.choices[0]
        if request.schema is not None and text and not choice.is_filtered():
            is_cut = choice.finish_reason != "stop"  # then its beginning must do
            if not (text.lstrip().startswith("{") if is_cut else _is_json(text)):
                names.append("response_format")
        return tuple(names)

    def _limit_field(self, request: TextRequest) -> str:
        """What the limit of tokens is called by the settings."""
        settings = self._settings
        return settings.length_field if isinstance(settings, ChatSettings) and request.prompt is None else "max_tokens"

    def _options(self, request: TextRequest, seed: int) -> dict[str, Any]:
        """Defaults are not sent: many servers know fewer options."""
        settings = self._settings
        sampling = request.sampling
        options: dict[str, Any] = {
            "model": settings.model,
            "temperature": sampling.temperature,
            self._limit_field(request): sampling.limit,
        }
        if sampling.top_p < 1:
            options["top_p"] = sampling.top_p
        if sampling.top_k:  # of vLLM, llama.cpp and others; OpenAI's refuse it
            options["extra_body"] = {"top_k": sampling.top_k}
        if sampling.frequency_penalty:
            options["frequency_penalty"] = sampling.frequency_penalty
        if sampling.presence_penalty:
            options["presence_penalty"] = sampling.presence_penalty
        if stops := sampling.unconditional_stops():
            options["stop"] = stops[:MOST_STOPS]
        if request.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": request.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        if isinstance(settings, SeededSettings) and settings.seed_bits:
            options["seed"] = seed >> (53 - settings.seed_bits)
        return options


def _is_beyond(reply: TextReply, limit: int) -> bool:
    """Whether a reply has more tokens than ``limit``: by the server's count or, without one, by its words, as each is a
    token at least."""
    tokens = reply.count("completion_tokens")
    if tokens is None:
        tokens = len((reply.choices[0].written() or "").split())
    return tokens > limit + BEYOND


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def openai_message(message: ChatMessage) -> dict[str, Any]:
    """A message in the form of OpenAI's interface. Raises AnswerError for an image of another kind."""
    if message.image is None:
        return {"role": message.role, "content": message.text}
    kind, data = encoded(message.image)
    image = {"url": f"data:{kind};base64,{data}"}
    if message.detail != "auto":
        image["detail"] = message.detail
    parts = [{"type": "text", "text": message.text}, {"type": "image_url", "image_url": image}]
    return {"role": message.role, "content": parts}
