"""Prompts of models in a local folder: chat templates, tokens, and what a reply's tokens say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agents.errors import AnswerError, UnavailableError
from agents.language.engines import reasoning
from agents.language.engines.chat_template import DATE, ChatTemplate
from agents.language.engines.pictures import load_reader
from agents.language.engines.reply_form import learned
from agents.language.engines.reply_parts import ReplyForm, ReplyParts
from agents.language.engines.text_request import (
    UNLIMITED,
    ChatMessage,
    Engine,
    Finish,
    GeneratedText,
    Sampling,
    TextRequest,
    settled,
)
from agents.models.loading import load_part, no_template

if TYPE_CHECKING:
    import datetime
    from pathlib import Path

PROMPT_END = 24
"""How many last tokens of a prompt may hold the mark by which it opens what the model thinks."""


class LocalEngine(Engine):
    """Base of the engines whose model lies in ``folder``.

    - ``template``: a chat template (Jinja) in place of the checkpoint's
    - ``positions``: the most tokens of prompt and reply together; None: as many as the model has
    - ``date``: the day that prompts name, if their template names one
    """

    sees: ClassVar[bool] = False
    """Whether the engine reads pictures, where the checkpoint does."""
    _size: int  # of the vocabulary that has embeddings

    def __init__(
        self, folder: Path, *, template: str | None = None, positions: int | None = None, date: datetime.date = DATE
    ) -> None:
        self.folder = folder
        self._template = template
        self._limit = positions
        self._date = date

    def open(self, *, chat: bool = False) -> None:
        """Load the tokenizer, and for ``chat`` learn from the template how the model writes its turns. Raises
        UnavailableError, for ``chat`` also where there is no usable template."""
        from transformers import AutoConfig, AutoTokenizer

        self._config = load_part(AutoConfig, self.folder, "configuration")
        self._reader = load_reader(self.folder, self._config) if chat and self.sees else None
        if self._reader is None:
            self._tokenizer = load_part(AutoTokenizer, self.folder, "tokenizer")
        else:
            self._tokenizer = self._reader.tokenizer
            self._template = self._template or self._reader.template
        self._encodes = bool(self._config.is_encoder_decoder)
        text_config = self._config.get_text_config(decoder=True)
        limits = (getattr(text_config, "max_position_embeddings", None), self._limit)
        self._positions: int | None = min(filter(None, limits), default=None)
        added = {token: piece for token, piece in self._tokenizer.added_tokens_decoder.items() if piece.special}
        self._special = frozenset(added) | frozenset(self._tokenizer.all_special_ids)
        marks = {piece.content for piece in added.values()} | set(self._tokenizer.all_special_tokens)
        self._marks = sorted(marks if self._reader is None else marks | self._reader.marks())
        if chat and not (self._template or self._tokenizer.chat_template):
            raise UnavailableError(no_template(self.folder))
        self.chat_template = ChatTemplate(
            self._tokenizer, self._template, lists=chat and self._reader is not None, date=self._date
        )
        self._takes_parts = self.chat_template.takes_parts
        if chat:
            try:
                self.chat_template.render([ChatMessage("user", "Hi")])
            except AnswerError as error:
                raise UnavailableError(f"{self.folder}: {error}") from None
        self._chats = chat
        self._form = ReplyForm()
        self._turn_end: int | None = None  # a token that the template writes behind an assistant's turn
        if chat:
            self._learn_form()

    @abstractmethod
    def load(self, device: str) -> None:
        """Load the model onto ``device``. Raises UnavailableError."""

    async def aclose(self) -> None:
        """Close connections, before :meth:`close`."""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def limits(self) -> list[str]:
        """Says that the template knows no system role."""
        if not self._chats or self.chat_template.takes_system:
            return []
        return ["knows no system role: instructions begin the first message"]

    def prompt_text(self, request: TextRequest) -> str:
        """The prompt's text as the template writes it, or the text to be continued; without special tokens of any
        message."""
        return self._chat_text(request) if request.prompt is None else self._plain(request.prompt)

    def about_prompt(self, request: TextRequest) -> dict[str, Any]:
        """What the base class says; also the date that the prompt names."""
        record = super().about_prompt(request)
        if request.prompt is None and self.chat_template.takes_a_date:
            record["prompt_date"] = self._date.isoformat()
        return record

    def half_of_positions(self) -> int:
        """Half of the model's positions."""
        return (self._positions or UNLIMITED) // 2

    def excess(self, request: TextRequest) -> int:
        """How many tokens of the prompt find no room beside the reply."""
        return max(0, len(self.tokens(request)) - self._room(request.sampling))

    def fitted_tokens(self, request: TextRequest) -> list[int]:
        """The prompt's newest tokens that fit the model. Raises AnswerError where there is no room, and where pictures
        would be cut."""
        tokens = self.tokens(request)
        pictures = request.pictures()
        if not pictures and max(tokens) >= self._size:
            raise AnswerError("bad_prompt", "the tokenizer has tokens that the model has no embedding for")
        most = request.sampling.limit
        room = self._room(request.sampling)
        if room < 1 or (self._encodes and self._positions and most > self._positions):
            raise AnswerError("no_room", f"the model has {self._positions} positions, too few for {most} tokens")
        if pictures and len(tokens) > room:
            raise AnswerError(
                "no_room", f"a prompt of {len(tokens)} tokens with its pictures: there is room for {room}"
            )
        return tokens[max(0, len(tokens) - room) :]

    def tokens(self, request: TextRequest) -> list[int]:
        """The prompt's tokens; texts of messages bring no special tokens. Raises AnswerError."""
        is_chat = request.prompt is None
        text = self.prompt_text(request)
        with_special = not is_chat and not self._encodes
        if is_chat and self._reader is not None:
            if pictures := request.pictures():
                ids: list[int] = self._reader.inputs(text, pictures)["input_ids"][0].tolist()
                return ids
            with_special = self._reader.adds_special_tokens(text)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=with_special, verbose=False)["input_ids"]
        if not is_chat and self._encodes:
            tokens = [*tokens, self._tokenizer.eos_token_id]
        start = self._tokenizer.bos_token_id
        return tokens or [self._tokenizer.eos_token_id if start is None else start]

    def _end_tokens(self, model_ends: int | Sequence[int] | None) -> list[int]:
        ends: Iterable[int | None] = model_ends if isinstance(model_ends, Sequence) else [model_ends]
        end_tokens = {self._tokenizer.eos_token_id, self._turn_end, *ends} - {None}
        if not end_tokens:
            raise UnavailableError(f"{self.folder}: neither the tokenizer nor the model names an end token")
        return sorted(end_tokens)

    def _room(self, sampling: Sampling) -> int:
        if not self._positions:
            return UNLIMITED
        return self._positions if self._encodes else self._positions - sampling.limit

    def _chat_text(self, request: TextRequest) -> str:
        if request.pictures() and not self._takes_parts:
            raise AnswerError("no_images", "this model or its engine reads no images")
        messages = []
        for message in request.messages:
            image = None if message.image is None else b""  # rendered prompts are kept, and need no pixels
            messages.append(replace(message, text=self._plain(message.text), image=image))
        return self.chat_template.prompt(tuple(messages), thinks=request.sampling.reasoning_tokens > 0)

    def _template_text(self, messages: Sequence[ChatMessage], as_parts: bool, *, thinks: bool = False) -> str:
        """The prompt of just these messages. Raises AnswerError."""
        return self.chat_template.render(messages, as_parts, thinks=thinks)

    def _plain(self, text: str) -> str:
        before = None
        while before != text:  # removing a mark may join the halves of another
            before = text
            for mark in self._marks:
                text = text.replace(mark, "")
        return text

    def _learn_form(self) -> None:
        """Read from the template how the model writes its turns."""
        added = {piece.content: token for token, piece in self._tokenizer.added_tokens_decoder.items()}
        added |= dict(zip(self._tokenizer.all_special_tokens, self._tokenizer.all_special_ids, strict=True))
        source = self._template or self._tokenizer.chat_template
        learnt = learned(self.chat_template.written, source if isinstance(source, str) else "", added)
        self._form = learnt.form
        self._turn_end = added.get(learnt.end)

    def _begun(self, prompt: Sequence[int]) -> str:
        return self._form.begun(self._decode_all(prompt[-PROMPT_END:]))

    def _parts(self, begun: str, tokens: Sequence[int], *, is_whole: bool) -> ReplyParts:
        """What the model thinks and what it answers, without special tokens."""
        raw = self._decode_all(tokens)
        parts = self._form.parts(raw, begun, is_whole=is_whole)
        if parts.thought is None and not begun and parts.answer == raw:
            if self._special.isdisjoint(tokens):
                return parts
            plain = [token for token in tokens if token not in self._special]
            return replace(parts, answer=self._decode_all(plain))
        thought = None if parts.thought is None else self._plain(parts.thought).strip()
        answer = None if parts.answer is None else self._plain(parts.answer).lstrip()
        return replace(parts, thought=thought, answer=answer)

    def _generated(
        self, tokens: Sequence[int], begun: str, sampling: Sampling, prompt_tokens: int, *, is_full: bool
    ) -> GeneratedText:
        """The text of a reply's ``tokens``, which are given without the end token. Raises AnswerError where no answer
        can be told from what the model thinks."""
        parts = self._parts(begun, tokens, is_whole=not is_full)
        text = parts.answer or ""
        if parts.fault is not None:
            text = ""
        stop = sampling.stop_in(text)
        # Without a stop, a character whose last bytes are missing is dropped.
        text = text.rstrip("\ufffd") if stop is None else text[:stop]
        finish: Finish = "length" if is_full and stop is None and not parts.is_ended else "stop"
        raw = self._decode_all(tokens)
        generated = GeneratedText(text, finish, raw, prompt_tokens, len(tokens), parts.thought or None)
        if parts.fault is not None:
            raise reasoning.unparted(generated, parts.fault, "no answer is taken from it")
        if parts.answer is None:
            raise reasoning.unfinished(generated)
        return generated

    def _settled(self, begun: str, tokens: Sequence[int]) -> tuple[str, bool]:
        """The answer so far, and whether a mark says that nothing more belongs to it."""
        parts = self._parts(begun, tokens, is_whole=False)
        if parts.answer is None or parts.fault is not None:
            return "", False
        if parts.is_ended:
            return parts.answer, True
        if self._form.may_begin(parts.answer):
            return "", False
        return settled(parts.answer, self._form.closing()), False

    def _decode_all(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
