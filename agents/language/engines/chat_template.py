"""What a checkpoint's template makes of chats: the prompt, and facts about the template that are found by rendering.

Names of models play no part, since a copy of a checkpoint may have any template.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

from agents.errors import AnswerError
from agents.language.engines.pictures import contents
from agents.language.engines.reply_marks import TAG
from agents.language.engines.text_request import ChatMessage, Role, TextRequest

Begins = Literal["kept", "merged"]
"""What becomes of a system text where the assistant begins: it stays where it is, or becomes the first user
message."""
Chat = tuple[ChatMessage, ...]
"""A chat's messages, in order; a system's message stands first, if there is one."""

DATE = datetime.date(2024, 7, 26)
"""The day of a prompt whose template writes one: Llama's templates have it where nobody says another."""
OTHER_DATE = datetime.date(1999, 12, 31)
"""A day by which it is found that a template writes one."""
DATE_STRING = "%d %b %Y"
"""The form of a date in Llama's templates."""
KEPT = 256
"""How many rendered prompts are kept, as each is wanted two or three times."""
PROBE = "PROBE"
"""A word that no template writes, by which messages are found in a rendered prompt."""
SHORT_PROMPT = 300
"""Letters that are shown of what a template adds."""
SWITCHES: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "reasoning": ((False,), (True,)),
    "thinking_budget": ((0,), ()),
    "thinking_mode": (("disabled",), ("enabled",)),
    "thinking_option": (("off",), ("on",)),
    "reasoning_effort": (("none", "no_think", "minimal"), ("high",)),
}
"""Variables by which templates close or open the reasoning, beside those that every template gets, the strongest first:
(values that close it, values that open it). Which of them a template knows is found by rendering."""
OPENING = "(the chat begins)"
"""An example of a first user message."""
USE_OPENING = f'give it a first user message by the setting AGENT.opening="{OPENING}" (--set)'
"""What helps where a template refuses chats that the assistant begins."""
IN_A_ROW = (
    "it takes no two messages of one speaker in a row, and other programs send none: use the setting "
    "AGENT.program=gpt-4o (--set)"
)
"""What helps where a template refuses two messages of a speaker in a row."""


class ChatTemplate:
    """A tokenizer's own template, or ``template`` (Jinja) in its place.

    - ``lists``: whether messages may be lists of parts, as pictures need
    - ``date``: the day that prompts name, if the template names one

    Methods raise AnswerError for chats that the template refuses.
    """

    def __init__(
        self, tokenizer: Any, template: str | None, *, lists: bool = False, date: datetime.date = DATE
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._date = date
        self.prompt = lru_cache(KEPT)(self._prompt)  # a method of the object, so that it goes with it
        self.takes_parts = lists and self._writes("user", as_parts=True)

    def render(
        self,
        messages: Sequence[ChatMessage],
        as_parts: bool | None = None,
        *,
        thinks: bool = False,
        date: datetime.date | None = None,
        clock: datetime.date | None = None,
        switches: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt of just these messages, after which the assistant is to speak.

        - ``as_parts``: whether messages are written as lists of parts; None: as the template takes them
        - ``thinks``: whether the model may think before it answers
        - ``date``, ``clock``: other days, where the template takes a date as a text, and where it asks for the time
        - ``switches``: other variables than :meth:`switches` finds
        """
        plain = [{"role": message.role, "content": message.text} for message in messages]
        as_parts = self.takes_parts if as_parts is None else as_parts
        if switches is None:
            switches = self.switches(thinks)
        chat = contents(messages) if as_parts else plain
        try:
            return self._applied(chat, True, thinks, date or self._date, clock or self._date, switches)
        except Exception as error:  # whatever the program in a template raises
            raise AnswerError("bad_prompt", f"the chat template refuses this chat: {error}") from None

    def written(self, messages: Sequence[Mapping[str, Any]], is_prompt: bool, thinks: bool) -> str:
        """The text of a chat whose messages may have more than a role and a content, such as earlier thoughts.
        ``is_prompt``: a reply follows. Raises whatever the program in the template does."""
        chat = [dict(message) for message in messages]
        if self.takes_parts:
            for message in chat:
                message["content"] = [{"type": "text", "text": message["content"]}]
        return self._applied(chat, is_prompt, thinks, self._date, self._date, self.switches(thinks))

    def _applied(
        self,
        chat: list[dict[str, Any]],
        is_prompt: bool,
        thinks: bool,
        date: datetime.date,
        clock: datetime.date,
        switches: Mapping[str, Any],
    ) -> str:
        today = datetime.datetime.combine(clock, datetime.time())
        text: str = self._tokenizer.apply_chat_template(
            chat,
            chat_template=self._template,
            add_generation_prompt=is_prompt,
            tokenize=False,
            date_string=date.strftime(DATE_STRING),
            strftime_now=today.strftime,  # in place of the library's clock: a prompt is the same tomorrow
            enable_thinking=thinks,
            thinking=thinks,  # as DeepSeek's and Granite's templates call it
            **switches,
        )
        return text

    def _prompt(self, messages: Chat, *, thinks: bool = False) -> str:
        """The prompt of a chat, in which its system text stands: as the template writes it, or as the first user
        message. Raises AnswerError where neither keeps it."""
        system = messages[0] if messages and messages[0].role == "system" else None
        if system is None:
            return self._whole(messages, thinks)
        if not self.takes_system or (_begins(messages) and self.begins == "merged"):
            messages = merged(messages)
        text = self._whole(messages, thinks)
        if not self._keeps(messages, system.text, text, thinks):
            why = "the chat template drops the instructions of this chat"
            raise AnswerError("bad_prompt", f"{why}: {self._advice(messages) or 'the model cannot be told its part'}")
        return text

    def _whole(self, messages: Chat, thinks: bool) -> str:
        """The prompt, in which earlier answers are whole. Many templates take what stands before a mark such as
        </think> for a thought, whoever opened it, and leave it out: of an answer that mentions the mark its end alone
        is left."""
        text = self._rendered(messages, thinks)
        if len(messages) > 1 and not self.keeps_history and any(message.role == "assistant" for message in messages):
            raise AnswerError(
                "bad_prompt", "the chat template leaves out earlier messages, or writes them in another order"
            )
        for message in messages:
            if message.role != "assistant" or (mark := TAG.search(message.text)) is None:
                continue
            if _squeezed(message.text) not in _squeezed(text):
                why = f"the chat template drops words of an earlier answer, which has the mark {mark[0]}"
                raise AnswerError("bad_prompt", why)
        return text

    def _rendered(self, messages: Chat, thinks: bool) -> str:
        try:
            return self.render(messages, thinks=thinks)
        except AnswerError as error:
            advice = self._advice(messages)
            if advice is None:
                raise
            raise AnswerError(error.code, f"{error}; {advice}") from None

    def _advice(self, messages: Chat) -> str | None:
        """What to do about a chat that the template refuses, if anything helps."""
        rest = messages[1:] if messages and messages[0].role == "system" else messages
        if any(first.role == second.role for first, second in pairwise(rest)):
            return IN_A_ROW
        if not _begins(messages):
            return None
        start = len(messages) - len(rest)
        opened = (*messages[:start], ChatMessage("user", OPENING), *rest)
        try:
            text = self.render(opened)
        except AnswerError:
            return None
        is_kept = not start or self._keeps(opened, messages[0].text, text, False)
        return USE_OPENING if is_kept else None

    # facts

    @cached_property
    def takes_system(self) -> bool:
        """Whether the template writes a system's text before a user's message."""
        return self._writes("system", as_parts=self.takes_parts)

    @cached_property
    def begins(self) -> Begins:
        """What becomes of a system's text where the assistant begins a conversation.

        It is "merged" where the template drops the text in any of the chats of such a conversation, and keeps it in all
        of them as the first user message.
        """
        chats = [_conversation(count) for count in (0, 2, 4)]
        if not self.takes_system or not any(self._loses(chat) for chat in chats):
            return "kept"
        return "merged" if all(self._has(merged(chat)) for chat in chats) else "kept"

    @cached_property
    def keeps_history(self) -> bool:
        """Whether a chat's messages stand in its prompt in their order, as far as the template takes such a chat at
        all."""
        roles: tuple[Role, Role] = ("user", "assistant")
        words = [f"{PROBE}{letter}" for letter in "ABCDE"]
        try:
            text = self.render([ChatMessage(roles[index % 2], word) for index, word in enumerate(words)])
        except AnswerError:
            return True
        places = [text.find(word) for word in words]
        return min(places) >= 0 and places == sorted(places)

    def _loses(self, chat: Chat) -> bool:
        try:
            return PROBE not in self.render(chat)
        except AnswerError:
            return False

    def _has(self, chat: Chat, thinks: bool = False) -> bool:
        try:
            return PROBE in self.render(chat, thinks=thinks)
        except AnswerError:
            return False

    @cached_property
    def asks_for_the_time(self) -> bool:
        """Whether a prompt names the day on which it is made, unless it is told another."""
        return self._differs(clock=OTHER_DATE)

    @cached_property
    def takes_a_date(self) -> bool:
        """Whether a prompt names the date of the settings."""
        return self.asks_for_the_time or self._differs(date=OTHER_DATE)

    def _differs(self, *, date: datetime.date | None = None, clock: datetime.date | None = None) -> bool:
        user = ChatMessage("user", "Hi")
        system = ChatMessage("system", PROBE)
        for chat in ((user,), (system, user), _conversation(0), _conversation(2)):
            try:
                if self.render(chat) != self.render(chat, date=date, clock=clock):
                    return True
            except AnswerError:
                continue
        return False

    def switches(self, thinks: bool) -> Mapping[str, Any]:
        """Variables beside ``enable_thinking`` and ``thinking`` by which this template closes the reasoning, or opens
        it if the model ``thinks``."""
        return self._switches_on if thinks else self._switches_off

    @cached_property
    def _switches_off(self) -> Mapping[str, Any]:
        return self._found_switch(False)

    @cached_property
    def _switches_on(self) -> Mapping[str, Any]:
        return self._found_switch(True)

    def _found_switch(self, thinks: bool) -> Mapping[str, Any]:
        """A switch acts on what stands behind the question, where the reply begins. One that closes the reasoning adds
        to it (a closing mark, or both marks); one that opens it takes such marks away. What else a value changes, as
        an effort that is only named to the model, is left as the template has it."""
        usual = self._end(thinks, {})
        if usual is None or not usual.strip():  # nothing there says how a reply begins
            return {}
        for name, (closing, opening) in SWITCHES.items():
            values = opening if thinks else closing
            for value in values:
                end = self._end(thinks, {name: value})
                if end is None or end == usual:
                    continue
                if thinks:
                    if usual.startswith(end.rstrip()):
                        return {name: value}
                elif end.startswith(usual.rstrip()):
                    is_opening = any(end == self._end(thinks, {name: other}) for other in opening)
                    if not is_opening:
                        return {name: value}
        return {}

    def _end(self, thinks: bool, switches: Mapping[str, Any]) -> str | None:
        """What the template writes behind a question, or None."""
        try:
            text = self.render([ChatMessage("user", PROBE)], thinks=thinks, switches=switches)
        except AnswerError:
            return None
        _, found, end = text.rpartition(PROBE)
        return end if found else None

    def adds(self) -> str | None:
        """What stands in the prompt around a user's message, on a line that may be shortened; None if the template
        refuses it."""
        try:
            before, _, behind = self.render([ChatMessage("user", PROBE)]).partition(PROBE)
        except AnswerError:
            return None
        return f"{_shortened(before)}[the message]{_shortened(behind)}"

    def _writes(self, role: Role, *, as_parts: bool) -> bool:
        """Whether the template writes the words of a chat's first message."""
        first = ChatMessage(role, PROBE)
        question = ChatMessage("user", "Hi")
        chat = [first, question] if role == "system" else [first]
        try:
            text = self.render(chat, as_parts, switches={})
        except AnswerError:
            return False
        return PROBE in text and f"'{PROBE}'" not in text  # a list of parts that is printed as it is

    def _keeps(self, messages: Chat, system: str, text: str, thinks: bool) -> bool:
        """Whether the prompt ``text`` has the ``system`` text. Templates trim white space, and a few change words of
        it: then a word that follows it is looked for."""
        if _squeezed(system) in _squeezed(text):
            return True
        probed = replace(messages[0], text=messages[0].text.replace(system, f"{system}\n{PROBE}", 1))
        return self._has((probed, *messages[1:]), thinks)


def merged(messages: Chat) -> Chat:
    """The chat with its system's text at the beginning of the first user message."""
    return TextRequest(messages=messages).without_system()


def _begins(messages: Chat) -> bool:
    """Whether the assistant begins, or is to begin."""
    rest = messages[1:] if messages and messages[0].role == "system" else messages
    return not rest or rest[0].role == "assistant"


def _conversation(count: int) -> Chat:
    """A chat of ``count`` messages after a system's text; the assistant has the first, and the two take turns."""
    roles: tuple[Role, Role] = ("assistant", "user")
    talk = [ChatMessage(roles[index % 2], f"Message {index}") for index in range(count)]
    return (ChatMessage("system", PROBE), *talk)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    half = SHORT_PROMPT // 2
    return text if len(text) <= SHORT_PROMPT else f"{text[:half]} … {text[-half:]}"
