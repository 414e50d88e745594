"""What the engines that run a model from a local folder share: prompts as tokens, and tokens as text.

Each of them gives its model the very same tokens. A prompt that is too long for the model loses its beginning;
:meth:`LocalEngine.excess` tells beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import AnswerError, UnavailableError
from agents.language.engines.request import Sampling, TextRequest
from agents.loading import load_part

if TYPE_CHECKING:
    from pathlib import Path

# What Llama's templates take for today where they are told nothing, so that a prompt is the same tomorrow.
TODAY = "26 Jul 2024"


class LocalEngine(ABC):
    """One model from a local ``folder``.

    ``template`` (Jinja) says how a chat is written where it is not to be the tokenizer's own. ``positions``: the most
    tokens of a prompt and its reply together, where the model has positions for more.
    """

    _size: int  # of the vocabulary that the model has embeddings for; known once it is loaded

    def __init__(self, folder: Path, *, template: str | None = None, positions: int | None = None) -> None:
        self.folder = folder
        self._template = template
        self._most = positions

    def open(self, *, chat: bool = False) -> None:
        """Load the tokenizer. Raises UnavailableError; for ``chat`` also if nothing says how a chat is written."""
        from transformers import AutoConfig, AutoTokenizer

        self._about = load_part(AutoConfig, self.folder, "configuration")
        self._tokenizer = load_part(AutoTokenizer, self.folder, "tokenizer")
        self._encodes = bool(self._about.is_encoder_decoder)
        known = getattr(self._about, "max_position_embeddings", None)
        self._positions: int | None = min((one for one in (known, self._most) if one), default=None)
        added = {token: piece for token, piece in self._tokenizer.added_tokens_decoder.items() if piece.special}
        self._special = frozenset(added) | frozenset(self._tokenizer.all_special_ids)
        self._marks = sorted({piece.content for piece in added.values()} | set(self._tokenizer.all_special_tokens))
        if chat and not (self._template or self._tokenizer.chat_template):
            raise UnavailableError(
                f"the tokenizer in {self.folder} has no chat template: the model was not trained to chat; use it as a "
                "completion model, or name a checkpoint that was"
            )
        self._takes_system = chat and self._shows_system()

    @abstractmethod
    def load(self, device: str) -> None:
        """Load the model. Raises UnavailableError."""

    @abstractmethod
    def provenance(self) -> dict[str, Any]:
        """What ran."""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def half(self) -> int:
        """The most tokens of a reply that leaves as many for its prompt."""
        return (self._positions or 1 << 31) // 2

    def excess(self, request: TextRequest) -> int:
        """How many tokens the prompt has that the model has no position for (0: it fits), beside ``max_tokens``."""
        return max(0, len(self.tokens(request)) - self._room(request.sampling))

    def fitted_tokens(self, request: TextRequest) -> list[int]:
        """The prompt's newest tokens that the model has positions for. Raises AnswerError."""
        tokens = self.tokens(request)
        if max(tokens) >= self._size:
            raise AnswerError("bad_prompt", "the tokenizer has tokens that the model has no embedding for")
        most, room = request.sampling.max_tokens, self._room(request.sampling)
        if room < 1 or (self._encodes and self._positions and most > self._positions):
            raise AnswerError("no_room", f"the model has {self._positions} positions, too few for {most} tokens")
        return tokens[max(0, len(tokens) - room) :]

    def tokens(self, request: TextRequest) -> list[int]:
        """The prompt's tokens, at least one. Special ones are the template's and the tokenizer's own: what looks like
        one in the text is taken out, as it could end a message or begin another speaker's. Raises AnswerError."""
        is_chat = request.prompt is None
        text = self._written(request) if is_chat else self._plain(request.prompt or "")
        adds = not is_chat and not self._encodes
        found: list[int] = self._tokenizer(text, add_special_tokens=adds, verbose=False)["input_ids"]
        if not is_chat and self._encodes:
            found = [*found, self._tokenizer.eos_token_id]
        start = self._tokenizer.bos_token_id
        return found or [self._tokenizer.eos_token_id if start is None else start]

    def _end_tokens(self, own: int | Sequence[int] | None) -> list[int]:
        """The tokens that end a text: the tokenizer's and the model's ``own``. Raises UnavailableError."""
        several: Iterable[int | None] = own if isinstance(own, Sequence) else [own]
        ends = {self._tokenizer.eos_token_id, *several} - {None}
        if not ends:
            raise UnavailableError(f"{self.folder}: neither the tokenizer nor the model names an end token")
        return sorted(ends)

    def _room(self, sampling: Sampling) -> int:
        """How many tokens a prompt may have."""
        if not self._positions:
            return 1 << 31
        return self._positions if self._encodes else self._positions - sampling.max_tokens

    def _written(self, request: TextRequest) -> str:
        """A chat as the template writes it, up to where the model begins."""
        if any(message.image is not None for message in request.messages):
            raise AnswerError("no_images", "this engine reads no images")
        messages = [{"role": one.role, "content": self._plain(one.text)} for one in request.messages]
        if not self._takes_system and len(messages) > 1 and messages[0]["role"] == "system":
            system, first, *others = messages
            messages = [{"role": first["role"], "content": f"{system['content']}\n\n{first['content']}"}, *others]
        elif not self._takes_system and messages and messages[0]["role"] == "system":
            messages[0]["role"] = "user"
        return self._template_text(messages)

    def _template_text(self, messages: list[dict[str, str]]) -> str:
        from jinja2 import TemplateError

        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=False,
                date_string=TODAY,
            )
        except (TemplateError, ValueError, TypeError) as error:
            raise AnswerError("bad_prompt", f"the chat template refuses this chat: {error}") from None
        return text

    def _shows_system(self) -> bool:
        """Whether the template takes a system message and writes it."""
        try:
            text = self._template_text([{"role": "system", "content": "PROBE"}, {"role": "user", "content": "Hi"}])
        except AnswerError:
            return False
        return "PROBE" in text

    def _plain(self, text: str) -> str:
        """The text without anything that the tokenizer would read as a special token."""
        before = None
        while before != text:
            before = text
            for mark in self._marks:
                text = text.replace(mark, "")
        return text

    def _decode(self, tokens: Sequence[int]) -> str:
        """What is said: without special tokens."""
        return self._decode_all([token for token in tokens if token not in self._special])

    def _decode_all(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
