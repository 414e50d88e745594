"""The options that requests of OpenAI's interface have in common: which are followed, refused or ignored.

An option is refused where the answer would not be what the client asked for, such as log probabilities or a call of a
tool. Other options without effect are ignored, and the response names them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool

from agents.stimulus_parts import WHOLE
from serving.http.bodies import Body, Seed
from serving.http.errors import ApiError

MOST_CHOICES = 16  # answers to one request
MOST_NAMED = 1000  # characters of the header that names what was ignored
SHOWN = "!#$&'()*+-./:;<=>?@[]^_`{|}~ "  # signs that the header shows beside letters and digits; a comma parts names
NO_TOOLS = "agents call no tools"
# Values with which an option asks for nothing.
OFF: tuple[Any, ...] = (None, False, 0, [], {}, "none", "auto", ["text"], {"type": "text"})


def is_off(value: Any) -> bool:
    """Whether the value of an option asks for nothing: ``null``, ``false``, ``0``, ``"auto"``, …"""
    return value in OFF


def leaves_free(choice: Any) -> bool:
    """Whether the option ``tool_choice`` lets an agent answer in text."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        # The mode stands one level deeper in chat completions than in responses.
        inside = choice.get("allowed_tools")
        return (inside if isinstance(inside, dict) else choice).get("mode") == "auto"
    return is_off(choice)


Refusals = Mapping[str, tuple[Callable[[Any], bool], str]]
# What would change an answer silently: whether a value asks for nothing, and why another is refused.
REFUSED: Refusals = {
    **dict.fromkeys(("tool_choice", "function_call"), (leaves_free, NO_TOOLS)),
    **dict.fromkeys(("logprobs", "top_logprobs"), (is_off, "agents have no log probabilities")),
    **dict.fromkeys(("response_format", "modalities", "audio"), (is_off, "agents answer in plain text only")),
}


def _without_any(seed: object) -> object:
    # -1 asks for any seed, in the way of llama.cpp.
    return None if seed == -1 else seed


class Options(Body):
    """Options of OpenAI's interface; those without a field here have no effect, or are refused."""

    model_config = ConfigDict(extra="allow")
    refused: ClassVar[Refusals] = REFUSED
    """Options that are refused: whether a value is harmless, and why another cannot be followed."""

    model: str = Field(max_length=200, examples=["eliza"])
    """One of GET /v1/models."""
    seed: Annotated[
        Seed | None,
        BeforeValidator(
            _without_any, json_schema_input_type=Annotated[int, Field(strict=True, ge=-1, lt=2**53), WHOLE] | None
        ),
    ] = None
    """The run's seed. Without one, or with -1, it is the server's own: the same request always has the same answer."""
    stream: StrictBool | None = None
    """Whether the answer comes in pieces, as server-sent events."""
    stimulus: dict[str, Any] = Field(default_factory=dict, examples=[{"id": "talk", "names": ["Ann", "Ben"]}])
    """Not in OpenAI's interface: fields of the stimulus (docs/stimuli.md) beside those that follow from the request. By
    default the id follows from the first message, the image or the cue, and the task from the agent."""

    def check_options(self) -> None:
        """Raises ApiError 400, with all of them, for options that cannot be followed and would change the answer."""
        options = self.model_extra or {}
        problems = []
        for name, (is_harmless, why) in self.refused.items():
            if not is_harmless(options.get(name)):
                problems.append((name, why))
        if problems:
            raise unsupported(problems)

    def ignored_options(self) -> list[str]:
        """The names of options that have no effect and change nothing that matters."""
        options = self.model_extra or {}
        return [name for name, value in options.items() if value is not None and name not in self.refused]


class StreamOptions(Body):
    """How a stream is sent."""

    model_config = ConfigDict(extra="ignore")

    include_usage: StrictBool | None = None
    """Whether a last piece has the numbers of tokens."""


Stop = str | Annotated[list[str], Field(max_length=16)] | None


def _as_list(stop: object) -> object:
    if stop is None:
        return []
    return [stop] if isinstance(stop, str) else stop


class ChoiceOptions(Options):
    """Options of the interfaces whose answers are choices."""

    n: Annotated[int, Field(strict=True, ge=1, le=MOST_CHOICES), WHOLE] | None = None
    """How many answers: the samples 0 to n-1."""
    stop: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=Stop)] = Field(
        default_factory=list, max_length=16
    )
    """The answer ends before the first of these texts; the record has all of it."""
    stream_options: StreamOptions | None = None
    """How a stream is sent."""

    @property
    def has_usage(self) -> bool:
        """Whether a stream ends with the numbers of tokens."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


def unsupported(problems: Sequence[tuple[str, str]]) -> ApiError:
    """The error 400 for pairs (field, why it cannot be followed)."""
    message = "; ".join(f"{name} cannot be used here: {why}" for name, why in problems)
    return ApiError(400, "unsupported_parameter", message, problems=problems)


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """The header ``Turinglike-Ignored`` with these names, {} without any. A name may be any text of a request, so that
    signs which a header cannot hold are percent-encoded."""
    if not names:
        return {}
    text = ", ".join(quote(name, safe=SHOWN) for name in names)
    if len(text) > MOST_NAMED:
        text = text[:MOST_NAMED] + " ..."
    return {"turinglike-ignored": text}
