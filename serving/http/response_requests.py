"""The body of ``POST /v1/responses``."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from serving.http.bodies import Body
from serving.http.chat_requests import MOST_MESSAGES
from serving.http.errors import invalid
from serving.http.openai_messages import Content, Message, OtherPart, TextPart, read_history
from serving.http.openai_options import REFUSED, Options, Refusals, is_off
from serving.http.question import Question
from serving.http.said_here import SaidHere

NOTHING_STORED = "no response is stored; send the whole conversation as input"
TOOL_ITEMS = ("_call", "_call_output")  # how the types of their items end
LOG_PROBABILITIES = "message.output_text.logprobs"


def _is_text(text: Any) -> bool:
    return text is None or (isinstance(text, dict) and is_off(text.get("format")))


def _has_no_log_probabilities(include: Any) -> bool:
    # Whatever else may be included, such as reasoning, an agent has nothing of.
    return not isinstance(include, list) or LOG_PROBABILITIES not in include


RESPONSES_REFUSED: Refusals = {
    **REFUSED,
    "text": (_is_text, "agents answer in plain text only"),
    "include": (_has_no_log_probabilities, "agents have no log probabilities"),
    "background": (is_off, "no response is stored; wait for the answer"),
    **dict.fromkeys(("previous_response_id", "conversation", "prompt"), (is_off, NOTHING_STORED)),
}


class Item(Body):
    """A message, or the id of one that was answered here. Items of other types have no effect."""

    model_config = ConfigDict(extra="ignore")

    type: str | None = None
    """"message" by default, or "item_reference" where there is an id alone."""
    role: Literal["user", "assistant", "system", "developer", "tool", "function"] | None = None
    """Who said a message."""
    content: Content = Field(default_factory=list)
    """A text, or parts that are texts and images."""
    id: str | None = None
    """The id of a message that was answered here."""

    @property
    def kind(self) -> str:
        """Its type: as the request says, else by what it has."""
        if self.type is not None:
            return self.type
        return "item_reference" if self.role is None and self.id is not None else "message"


Items = Annotated[list[Item], Field(min_length=1, max_length=MOST_MESSAGES)]


def _as_items(given: object) -> object:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class ResponsesRequest(Options):
    """The next message of a conversation, the answer to an image, or a word that goes with another. Other options of
    OpenAI's interface have no effect. Nothing is stored."""

    refused: ClassVar[Refusals] = RESPONSES_REFUSED
    """What every request refuses, and what this route alone has."""

    input: Annotated[Items, BeforeValidator(_as_items, json_schema_input_type=str | Items)] = Field(
        examples=["I like books."]
    )
    """A text, or the whole conversation. The last message is the user's. Only its image counts, and it has no more than
    one."""

    def question(self, said: SaidHere) -> Question:
        """What the request asks an agent. ``said`` has the texts of earlier answers, which the request may name by id.
        Raises ApiError for what no agent can answer."""
        self.check_options()
        messages = [_message(f"input.{number}", item, said) for number, item in enumerate(self.input)]
        history = read_history("input", messages)
        text: Mapping[str, Any] = (self.model_extra or {}).get("text") or {}
        ignored = [f"text.{name}" for name, value in text.items() if name != "format" and value is not None]
        return Question(
            model=self.model,
            place="input",
            history=history,
            ignored=self.ignored_options() + ignored + history.ignored,
            fields=self.stimulus,
            seed=self.seed,
        )


def _message(place: str, item: Item, said: SaidHere) -> Message:
    kind = item.kind
    if kind == "item_reference":
        text = said.text(item.id or "")
        if text is None:
            hours = f"{said.seconds / 3600:g} h"
            raise invalid([(place, f"is no message that was answered here in the last {hours}: send its text")])
        return Message(role="assistant", content=[TextPart(type="text", text=text)])
    if kind == "message":
        if item.role is None:
            raise invalid([(f"{place}.role", "is missing")])
        return Message(role=item.role, content=item.content)
    if kind.endswith(TOOL_ITEMS):
        return Message(role="tool")
    return Message(role="assistant", content=[OtherPart(type=kind)])
