"""The answers to a question of OpenAI's interface: whole, or in pieces as they are made."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from serving.http.errors import failure, invalid
from serving.http.question import Question, stimulus_of_question
from serving.http.service import Answered, Service
from serving.scheduling.request import Listener, Outcome
from serving.scheduling.tasks import all_of, cancel

PIECE = re.compile(r"\s*\S+|\s+$")  # the pieces of a whole answer; together they are the text
Finish = Literal["stop", "length", "content_filter"]
FINISH: Mapping[str, Finish] = {"length": "length", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` up to the first stop; ``index`` is that of the choice."""

    index: int
    text: str
    finish: Finish
    answered: Answered


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of an answer's text; the first one may be empty."""

    index: int
    text: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Zeros where an agent counts no tokens: some clients cannot do without numbers."""

    prompt: int
    answers: int

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "Usage":
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
    """Make it in a thread of its own, as images are decoded. Use :meth:`whole`, or :meth:`begin`, :meth:`pieces` and
    :meth:`close`. Raises ApiError. What need not be kept (``keep``) is left out of a server's run folder."""

    def __init__(self, service: Service, question: Question, *, keep: bool) -> None:
        self.service = service
        self.question = question
        self._keep = keep
        self._count = question.count
        self._stimulus, self._files = stimulus_of_question(service, question)
        service.check(question.model, self._stimulus)
        most = service.agent(question.model).declaration().max_samples
        if most is not None and self._count > most:
            raise invalid([("n", f"agent {question.model} has at most {most} answers to one stimulus")])
        service.check_queue(question.model, self._count)
        self._texts = [""] * self._count  # of each answer, as far as it is known
        self._wake = asyncio.Event()

    async def whole(self) -> list[Answer]:
        """All answers."""
        return self._read(await self._answers([None] * self._count))

    async def begin(self) -> None:
        """Await the first piece. Raises ApiError."""
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

    async def pieces(self) -> AsyncGenerator[Piece | Answer, None]:
        """Each answer's pieces, then the answer."""
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
        """Ask no more, also where nobody has taken a piece."""
        await cancel(self._answering)

    def more(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """What is not in OpenAI's interface."""
        records = [orjson.Fragment(answer.answered.record.rstrip()) for answer in answers]
        return {"records": records, "ignored": self.question.ignored}

    async def _answers(self, listeners: Sequence[Listener | None]) -> list[Answered]:
        name = self.question.model
        with self.service.queued(name, self._count) as places:
            answers = await all_of(
                places.answer(
                    self._stimulus,
                    files=self._files,
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

    def _read(self, made: Sequence[Answered]) -> list[Answer]:
        answers = []
        for index, answered in enumerate(made):
            text, finish = self._text(answered.outcome)
            answers.append(Answer(index, text, finish, answered))
        return answers

    def _text(self, outcome: Outcome) -> tuple[str, Finish]:
        fields = orjson.loads(outcome.answer or b"")
        match self._stimulus.task:
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
        ends = [at for stop in self.question.stop if stop and (at := text.find(stop)) >= 0]
        if ends:
            return text[: min(ends)], "stop"
        return text, FINISH.get((fields.get("finish") or "").partition(";")[0], "stop")
