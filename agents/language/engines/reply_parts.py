"""The parts of a reply: what a model thinks, what it answers, and where its turn ends.

Why so: each family of models writes thoughts in its own marks. A server may leave the marks in, take them out, or cut a
reply within one. So an answer is never guessed: where nothing tells thought and answer apart, the reply has a
``fault``, and no answer is taken from it.

What breaks: a thought that is taken for an answer is sent to a judge, and an answer that is taken for a thought is
lost. A mark that stands in a sentence as words ("I use </think> tags") must stay words. Certain marks belong to
``THOUGHTS`` and ``ANSWERS``; marks in words that any model could write belong to ``WORDED_THOUGHTS``, which need their
end. A change here changes answers; tests/agents/language/engines/test_reply_forms.py and test_served_replies.py have
the known families.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agents.language.engines.reply_marks import (
    AGAIN,
    ANSWERS,
    ANSWERS_AFTER_THOUGHT,
    BEGUN_TAG,
    BOX,
    CERTAIN_ENDS,
    CHANNEL,
    LABEL,
    NEXT_SPEAKERS,
    PROMPT_HEADS,
    RECIPIENT,
    TAG,
    THOUGHTS,
    TURN_BEGINS,
    TURN_ENDS,
    WORDED_THOUGHTS,
    Mark,
)

QUOTES = tuple("`'\"“”‘’«»(„*")
"""What may stand around a mark that is only mentioned."""


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """The parts of a reply, or of the beginning of one."""

    thought: str | None
    """What the model thinks; None where nothing says that it does."""
    answer: str | None
    """What it answers; None within what it thinks."""
    is_ended: bool = False
    """Whether a mark says that nothing more belongs to the answer."""
    fault: str | None = None
    """Why thought and answer cannot be told apart; None if they can."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The marks in a model's replies: those that are known of any model, and its template's own."""

    thoughts: tuple[Mark, ...] = THOUGHTS
    """The marks of what it thinks."""
    answers: tuple[Mark, ...] = ANSWERS
    """The marks that wrap an answer."""
    ends: tuple[str, ...] = ()
    """What ends an answer wherever it stands."""
    worded: tuple[Mark, ...] = ()
    """The marks of :data:`WORDED_THOUGHTS` that the template has."""
    cuts_turns: bool = False
    """Whether texts may hold marks of a turn's end, as of a server that leaves special tokens in them."""

    def begun(self, prompt: str) -> str:
        """The mark with which the end of a ``prompt`` begins a part of the reply, or ""."""
        end = prompt.rstrip()
        for mark in (*self.thoughts, *WORDED_THOUGHTS, *self.answers):
            if end.endswith(mark.opens):
                return mark.opens
        tags = list(TAG.finditer(end[-100:]))
        if tags and tags[-1].end() == len(end[-100:]) and not tags[-1][1]:
            return tags[-1][0]
        return ""

    def parts(self, text: str, begun: str = "", *, is_whole: bool = True, has_thought: bool = False) -> ReplyParts:
        """The parts of ``text``.

        - ``begun``: the mark with which the prompt began the reply
        - ``is_whole``: the model ended the text itself
        - ``has_thought``: what it thinks is known from elsewhere
        """
        thoughts: list[str] = []
        rest = CHANNEL.sub(r"\1", RECIPIENT.sub("", begun + text))
        if self.cuts_turns:
            rest = _without_head(rest)
        if (label := LABEL.match(rest)) is not None and self.begins_thought(rest[label.end() :]):
            rest = rest[label.end() :]
        while True:
            start = rest.lstrip()
            if again := _first_of(start, AGAIN):
                rest = start[len(again) :]
                continue
            mark = self._thought_at(start)
            if mark is None:
                break
            inside = start[len(mark.opens) :]
            index, close = _earliest(inside, mark.closes)
            if index < 0:
                is_worded = mark in WORDED_THOUGHTS and mark not in self.worded and begun != mark.opens
                if is_worded and is_whole:
                    break
                return ReplyParts(_joined([*thoughts, inside]), None)
            thoughts.append(inside[:index])
            # The mark that closes a thought may open the answer.
            is_shared = any(answer.opens == close for answer in self.answers)
            rest = inside[index if is_shared else index + len(close) :]
        return self._answer(rest, thoughts, is_whole=is_whole, has_thought=has_thought)

    def _answer(self, rest: str, thoughts: list[str], *, is_whole: bool, has_thought: bool) -> ReplyParts:
        start = rest.lstrip()
        is_after = bool(thoughts) or has_thought
        wrappers = [mark for mark in ANSWERS_AFTER_THOUGHT if is_after or _is_wrapped(start, mark)]
        opening = [*self.answers, *wrappers]
        mark = next((mark for mark in opening if start.startswith(mark.opens)), None)
        ends = self.ends
        answer = rest
        if mark is not None:
            answer = start[len(mark.opens) :]
            ends = (*ends, *mark.closes)
        elif thoughts and not is_whole and self.may_begin(start):
            return ReplyParts(_joined(thoughts), None)
        elif thoughts:
            answer = start
        index, _ = _earliest(answer, ends)
        if index < 0 and self.cuts_turns:
            index = turn_end(answer)
        is_ended = index >= 0
        if is_ended:
            answer = answer[:index].rstrip()
        if mark is not None:
            answer = answer.strip() if is_ended else answer.lstrip()
        answer = _unboxed(answer)
        return ReplyParts(_joined(thoughts) if thoughts else None, answer, is_ended, self._fault(answer))

    def _thought_at(self, start: str) -> Mark | None:
        """The mark of a thought that begins ``start``. One that closes a thought closes an empty one there."""
        for mark in (*self.thoughts, *WORDED_THOUGHTS):
            if start.startswith(mark.opens):
                return mark
        tag = TAG.match(start)
        if tag is not None:
            close = f"</{tag[2]}>"
            return Mark("", (close,)) if tag[1] else Mark(tag[0], (close,))
        ends = {end for mark in self.answers for end in mark.closes}
        for mark in self.thoughts:
            for close in mark.closes:
                if start.startswith(close) and close not in ends:
                    return Mark("", (close,))
        return None

    def begins_thought(self, text: str) -> bool:
        """Whether ``text`` begins with a mark that opens a thought."""
        mark = self._thought_at(text.lstrip())
        return mark is not None and mark.opens != ""

    def may_begin(self, text: str) -> bool:
        """Whether ``text`` could be the beginning of a mark that stands before an answer."""
        start = text.lstrip()
        if BEGUN_TAG.fullmatch(start):
            return True
        marks = (*self.thoughts, *WORDED_THOUGHTS, *self.answers, *ANSWERS_AFTER_THOUGHT)
        return any(text.startswith(start) for text in (*AGAIN, *(mark.opens for mark in marks)))

    def closing(self) -> list[str]:
        """All marks that may stand behind an answer. Nobody should hear the beginning of one while the text is
        generated."""
        marks = [*self.answers, *ANSWERS_AFTER_THOUGHT]
        return [*self.ends, *BOX, *(close for mark in marks for close in mark.closes)]

    def lone_marks(self, answer: str) -> list[str]:
        """The marks of thoughts in an answer, such as "</think>", each once."""
        return list(dict.fromkeys(answer[start:end] for start, end, _ in self._places(answer)))

    def _places(self, answer: str) -> list[tuple[int, int, bool]]:
        """Where marks of thoughts stand in an answer, and whether each closes a thought."""
        places = [(tag.start(), tag.end(), bool(tag[1])) for tag in TAG.finditer(answer)]
        for mark in self.thoughts:
            for text in (mark.opens, *mark.closes):
                index = answer.find(text)
                if index >= 0 and text not in (*TURN_ENDS, *AGAIN):  # which stand for other things, too
                    places.append((index, index + len(text), text != mark.opens))
        # Parts of gpt-oss's marks, too: a header that is damaged says nothing of what follows it.
        for text in (*(mark.opens for mark in self.answers), "<|channel|>", "<|message|>"):
            index = answer.find(text)
            if index >= 0:
                places.append((index, index + len(text), True))
        return sorted(places)

    def _fault(self, answer: str) -> str | None:
        """Why an answer may hold a thought: a mark stands in it as a model writes it. A mark that a person would only
        mention, in a sentence, in quotation marks or in code, is no fault."""
        for start, end, closes in self._places(answer):
            if not _is_mentioned(answer, start, end, closes=closes):
                return f"{answer[start:end]} stands in the reply, and nothing says where the model began to think"
        return None


def turn_end(answer: str) -> int:
    """The index of a turn's last mark, behind which nothing follows but another turn; -1 if there is none."""
    found = []
    for mark in (*TURN_ENDS, *NEXT_SPEAKERS):
        index = answer.find(mark)
        while index >= 0:
            behind = answer[index + len(mark) :]
            after = behind.lstrip()
            is_last = not after or after.startswith(TURN_ENDS) or TURN_BEGINS.match(after) is not None
            if mark in NEXT_SPEAKERS and behind.startswith("\n"):
                is_last = True
            before = answer[:index]
            # HTML strikes words out by <s>…</s>.
            is_html = mark == "</s>" and before.count("<s>") > before.count("</s>")
            if is_last and not is_html and not _is_in_code(before):
                found.append(index)
                break
            index = answer.find(mark, index + 1)
    certain = CERTAIN_ENDS.search(answer)
    if certain is not None and not _is_in_code(answer[: certain.start()]):
        found.append(certain.start())
    return min(found, default=-1)


def _without_head(text: str) -> str:
    """Without what begins a text or an assistant's turn. <s> begins one where no </s> stands but at the end: HTML
    strikes words out by both."""
    head = PROMPT_HEADS.match(text)
    text = text[head.end() :] if head is not None else text
    if text.lstrip().startswith("<s>") and "</s>" not in text.rstrip()[:-4]:
        return text.lstrip()[3:]
    return text


def _is_wrapped(text: str, mark: Mark) -> bool:
    """Whether all of ``text`` stands between one pair of marks, as no person would write it."""
    [close] = mark.closes
    whole = text.strip()
    return whole.startswith(mark.opens) and whole.endswith(close) and whole.count(close) == whole.count(mark.opens) == 1


def closed(text: str, form: ReplyForm) -> ReplyParts:
    """The parts of a reply that begins within a thought, which ends at whatever mark of ``form`` closes it first."""
    tags = [tag for tag in TAG.finditer(text) if tag[1]]
    places = [(tag.start(), tag[0]) for tag in tags[:1]]
    for mark in (*form.thoughts, *WORDED_THOUGHTS):
        for close in mark.closes:
            index = text.find(close)
            if index >= 0:
                places.append((index, close))
    if not places:
        return ReplyParts(text, None)
    index, close = min(places)
    is_shared = any(answer.opens == close for answer in form.answers)
    parts = form.parts(text[index if is_shared else index + len(close) :], has_thought=True)
    thought = _joined([text[:index], parts.thought or ""])
    return replace(parts, thought=thought, answer=None if parts.answer is None else parts.answer.lstrip())


def _first_of(text: str, starts: Iterable[str]) -> str:
    return next((start for start in starts if text.startswith(start)), "")


def _earliest(text: str, marks: Iterable[str]) -> tuple[int, str]:
    """(index, mark) of the first of ``marks`` in ``text``; at one place the longest; (-1, "") without any."""
    found = [(text.find(mark), -len(mark), mark) for mark in marks if mark and mark in text]
    if not found:
        return -1, ""
    index, _, mark = min(found)
    return index, mark


def _joined(thoughts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))


def _unboxed(answer: str) -> str:
    """Without the box of GLM's vision models."""
    begins, ends = BOX
    index = answer.find(begins)
    if index < 0 or answer.find(ends, index) < 0:
        return answer
    before, _, rest = answer.partition(begins)
    inside, _, after = rest.partition(ends)
    return before + inside.strip() + after


def _is_in_code(before: str) -> bool:
    return before.count("```") % 2 == 1


def _is_mentioned(text: str, start: int, end: int, *, closes: bool) -> bool:
    """Whether a mark stands in ``text`` as a person would mention it; ``closes``: it ends a thought.

    The first rule that applies decides, so their order matters. Quotation marks and code come before the rule of lines,
    because a mark in code begins a line, too. The second of a pair comes before the rule of words, because it stands
    right behind a word: "I use <think>this</think> tags". Where no rule before it applied, an opening mark within a
    line is a mention. A closing one is, too, unless the text goes on right behind it or on the next line. The replies
    that must be parted, refused or left alone are in tests/agents/language/engines/test_served_replies.py: add yours
    there first.
    """
    before = text[:start]
    after = text[end:]
    if _is_in_code(before) or before.endswith(QUOTES) or after.startswith(QUOTES):
        return True
    line = before.rpartition("\n")[2]
    opens = next((tag for tag in TAG.finditer(line) if not tag[1]), None)
    if opens is not None and line[: opens.start()].strip() and not after[:1].isalnum():
        return True  # the second of a pair within a sentence
    if not line.strip() and (closes or not after[:1].isspace() or after.startswith("\n")):
        return False  # it begins a line
    if before and not before[-1].isspace():
        return False  # right behind a word
    if not closes:
        return True
    is_at_word = bool(after) and not (after[0].isspace() or after[0] in ".,;:!?)")
    ends_line = after.startswith("\n") and bool(after.strip())
    return not (is_at_word or ends_line)
