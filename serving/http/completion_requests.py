"""The body of ``POST /v1/completions``, OpenAI's older interface of a single text."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from serving.http.openai_messages import Message, TextPart, read_history
from serving.http.openai_options import REFUSED, ChoiceOptions, Refusals, is_off
from serving.http.question import Question

ONE_TEXT = "must be one text: an agent is asked one thing at a time, and reads no numbers of tokens"


def _is_none(value: Any) -> bool:
    # Here 0 asks for the log probabilities of the answer itself.
    return value is None or value is False


def _is_one(value: Any) -> bool:
    return is_off(value) or value == 1


def _is_empty(value: Any) -> bool:
    return is_off(value) or value == ""


COMPLETIONS_REFUSED: Refusals = {
    **REFUSED,
    "logprobs": (_is_none, "agents have no log probabilities"),
    "best_of": (_is_one, "agents have no log probabilities to choose by"),
    "echo": (is_off, "the prompt is a message to the agent, and no part of its answer"),
    "suffix": (_is_empty, "agents answer a message, and write nothing between two texts"),
}


def _one_text(prompt: object) -> object:
    if isinstance(prompt, list):
        if len(prompt) != 1 or not isinstance(prompt[0], str):
            raise PydanticCustomError("prompt", ONE_TEXT)
        return prompt[0]
    return prompt


class CompletionRequest(ChoiceOptions):
    """An answer to a text, as to the only message of a chat. Other options of OpenAI's interface have no effect."""

    refused: ClassVar[Refusals] = COMPLETIONS_REFUSED
    """What every request refuses, and what this route alone has: ``echo``, ``suffix`` and log probabilities."""

    prompt: Annotated[
        str,
        BeforeValidator(
            _one_text, json_schema_input_type=str | Annotated[list[str], Field(min_length=1, max_length=1)]
        ),
    ] = Field(examples=["I like books."])
    """A message to the agent, or a cue: not a beginning that the agent goes on with."""

    def question(self) -> Question:
        """What the request asks an agent. Raises ApiError for what no agent can answer."""
        self.check_options()
        history = read_history("prompt", [Message(role="user", content=[TextPart(type="text", text=self.prompt)])])
        return Question(
            model=self.model,
            place="prompt",
            history=history,
            ignored=self.ignored_options(),
            fields=self.stimulus,
            seed=self.seed,
            count=self.n or 1,
            stop=self.stop,
        )
