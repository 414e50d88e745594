"""The answers to a question of OpenAI's interface, whole or in pieces as they are made."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from serving.http.errors import failure, invalid
from serving.http.question import Question, row_of_question
from serving.http.service import Answered, Service
from serving.scheduling.request import Listener, Outcome
from serving.scheduling.tasks import all_of, cancel

PIECE = re.compile(r"\s*\S+|\s+$")  # the pieces that a whole answer is sent in; together they are its text
FinishReason = Literal["stop", "length", "content_filter"]
"""How an answer ended, by OpenAI's names."""
FINISH: Mapping[str, FinishReason] = {"length": "length", "filtered": "content_filter"}  # by an answer's ``finish``


@dataclass(frozen=True, slots=True)
class ChoiceText:
    """One of the answers to a question."""

    index: int
    """The number of the choice, from 0; it is the sample, too."""
    text: str
    """The text, up to the first of the question's stops."""
    finish: FinishReason
    """How it ended."""
    answered: Answered
    """The agent's whole answer, with its record."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of an answer's text."""

    index: int
    """The number of the choice, from 0."""
    text: str
    """What is new; "" in the only piece of an empty answer."""
    is_first: bool
    """Whether it is the answer's first piece."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens. They are 0 where an agent counts none: some clients cannot do without numbers."""

    prompt: int
    """Tokens of the prompt, which all answers share."""
    answers: int
    """Tokens of all answers together."""

    @classmethod
    def of(cls, answers: Sequence[ChoiceText]) -> "Usage":
        """The tokens of the answers to one question."""
        prompt_tokens = 0
        answer_tokens = 0
        for answer in answers:
            match orjson.loads(answer.answered.outcome.raw or b"null"):
                case {"prompt_tokens": int(prompt), "tokens": int(tokens)}:
                    prompt_tokens = max(prompt_tokens, prompt)
                    answer_tokens += tokens
                case _:
                    return cls(0, 0)
        return cls(prompt_tokens, answer_tokens)


class Answering:
    """A question under way. For whole answers use :meth:`whole`; for pieces :meth:`begin`, :meth:`pieces` and
    :meth:`close`.

    Make it in a thread of its own, because it decodes images. Without ``keep`` the answers are not kept in the server's
    run folder. Raises ApiError for a question that is none for the agent, or where the queue is full.
    """

    def __init__(self, service: Service, question: Question, *, keep: bool) -> None:
        self.service = service
        self.question = question
        self._keep = keep
        self._count = question.count
        self._row = row_of_question(service, question)
        service.check(question.model, self._row.parsed())
        most = service.declared(question.model).max_samples
        if most is not None and self._count > most:
            raise invalid([("n", f"agent {question.model} has at most {most} answers to one stimulus")])
        service.check_queue(question.model, self._count)
        self._texts = [""] * self._count  # of each answer, as far as it is known
        self._wake = asyncio.Event()

    async def whole(self) -> list[ChoiceText]:
        """All answers, by index. Raises ApiError for a failure of any."""
        return self._read(await self._answers([None] * self._count))

    async def begin(self) -> None:
        """Ask, and return when there is a first piece. Raises ApiError for a failure before that."""
        # What the request's stops cut is not known before the end.
        listeners = [None if self.question.stop else self._listener(index) for index in range(self._count)]
        self._answering = asyncio.create_task(self._answers(listeners))
        self._answering.add_done_callback(lambda _: self._wake.set())
        try:
            await self._wake.wait()
        except asyncio.CancelledError:
            await cancel(self._answering)
            raise
        if self._answering.done():
            self._answering.result()

    async def pieces(self) -> AsyncGenerator[Piece | ChoiceText, None]:
        """The pieces of all answers as they are made; behind the last piece of each the whole :class:`ChoiceText`."""
        sent: list[str | None] = [None] * self._count

        def piece(index: int, text: str) -> Piece:
            before = sent[index]
            sent[index] = (before or "") + text
            return Piece(index, text, is_first=before is None)

        while not self._answering.done():
            for index, text in enumerate(self._texts):
                before = sent[index] or ""
                if text.startswith(before) and text != before:
                    yield piece(index, text[len(before) :])
            await self._wake.wait()
            self._wake.clear()
        for answer in self._read(self._answering.result()):
            before = sent[answer.index] or ""
            if not answer.text.startswith(before):
                raise failure(self.question.model, "changed")
            left = answer.text[len(before) :]
            if not before:
                for text in PIECE.findall(left) or [""]:
                    yield piece(answer.index, text)
            elif left:
                yield piece(answer.index, left)
            yield answer

    async def close(self) -> None:
        """End the asking, if it goes on."""
        await cancel(self._answering)

    def more(self, answers: Sequence[ChoiceText]) -> dict[str, Any]:
        """The field "turinglike" of a response, which OpenAI's interface has not: the records, and what was ignored."""
        records = [orjson.Fragment(answer.answered.record.rstrip()) for answer in answers]
        return {"records": records, "ignored": self.question.ignored}

    async def _answers(self, listeners: Sequence[Listener | None]) -> list[Answered]:
        name = self.question.model
        with self.service.queued(name, self._count) as places:
            answers = await all_of(
                places.answer(
                    self._row,
                    sample=sample,
                    seed=self.question.seed,
                    listener=listener,
                    keep=self._keep,
                )
                for sample, listener in enumerate(listeners)
            )
        for answered in answers:
            outcome = answered.outcome
            if outcome.status == "rejected":
                raise failure(name, "rejected")
            if outcome.status != "ok":
                raise failure(name, "failed" if outcome.error is None else outcome.error.code)
        return answers

    def _listener(self, index: int) -> Callable[[str], None]:
        def say(text: str) -> None:
            if len(text) > len(self._texts[index]):
                self._texts[index] = text
                self._wake.set()

        return say

    def _read(self, made: Sequence[Answered]) -> list[ChoiceText]:
        answers = []
        for index, answered in enumerate(made):
            text, finish = self._text(answered.outcome)
            answers.append(ChoiceText(index, text, finish, answered))
        return answers

    def _text(self, outcome: Outcome) -> tuple[str, FinishReason]:
        fields = orjson.loads(outcome.answer or b"")
        match self._row.task:
            case "color_estimation":
                text = fields["color"]
            case "object_detection":
                text = ", ".join(fields["labels"])
            case "attention_prediction":
                text = orjson.dumps(fields["fixations"]).decode()
            case "word_association":
                text = fields["word"]
            case _:
                text = fields["text"]
        ends = [text.find(stop) for stop in self.question.stop if stop and stop in text]
        if ends:
            return text[: min(ends)], "stop"
        return text, FINISH.get((fields.get("finish") or "").partition(";")[0], "stop")
