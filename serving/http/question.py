"""What a request of OpenAI's interface asks, by whichever route it comes, and the row of a stimulus made of it.

The stimulus is a conversation that goes on, a task about the image of the last message, or, for agents that associate,
a cue: the text of the last message.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.contract import derive_seed
from agents.stimuli import ConversationStimulus, Task
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import checked_row, from_base64
from serving.http.errors import ApiError, invalid
from serving.http.openai_messages import History
from serving.http.service import Service
from serving.sets.stimulus_row import StimulusRow

IMAGE_TASKS: tuple[Task, ...] = (
    "image_captioning",
    "color_estimation",
    "object_detection",
    "attention_prediction",
)
TEXT_TASKS: tuple[Task, ...] = ("conversation", "word_association")


@dataclass(frozen=True, slots=True)
class Question:
    """What a request asks."""

    model: str
    """The agent's name."""
    place: str
    """The request's field with the texts, for errors: "messages", "input" or "prompt"."""
    history: History
    """The messages, as the agent sees them."""
    ignored: list[str]
    """The names of all that has no effect."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the stimulus that the request gives."""
    seed: int | None = None
    """The run's seed; None: the server's."""
    count: int = 1
    """How many answers: the samples 0 to ``count`` - 1."""
    stop: Sequence[str] = ()
    """The answer that is sent ends before the first of these texts."""


def row_of_question(service: Service, question: Question) -> StimulusRow:
    """The row of a question's stimulus, with the bytes of its image. Raises ApiError for a question that is none for
    the agent. Call it in a thread of its own, as :func:`serving.http.bodies.from_base64`."""
    image = question.history.image
    likely = TEXT_TASKS if image is None else IMAGE_TASKS
    task = question.fields.get("task") or _first_task(service, question.model, likely)
    if task not in likely:
        raise invalid([(question.place, f"this task {'needs an image' if image is None else 'takes no image'}")])
    if task == "conversation":
        return _conversation(service, question)
    if image is None:
        _, cue = question.history.turns[-1]
        return checked_row(_fields(question, "cue", cue.encode(), task=task, cue=cue), {})
    place, text = image
    files = {"image": from_base64(text, place)}
    return checked_row(_fields(question, "image", files["image"], task=task, image="image"), files)


def _first_task(service: Service, name: str, likely: Sequence[Task]) -> Task:
    tasks = service.declared(name).tasks
    for task in likely:
        if task in tasks:
            return task
    wanted = "images" if likely is IMAGE_TASKS else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(tasks)}: {wanted} is not for it")


def _conversation(service: Service, question: Question) -> StimulusRow:
    turns = question.history.turns
    first_side, first_text = turns[0]
    fields = _fields(question, "chat", first_text.encode(), task="conversation", type="HM")
    stimulus = checked_row(fields, {}).parsed()
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if question.seed is None else question.seed
    names = draw_scenario(stimulus, derive_seed(run_seed, question.model, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in turns]
    return checked_row({**fields, "names": names, "who_starts": first_side, "history": history}, {})


def _fields(question: Question, kind: str, content: bytes, **fields: Any) -> dict[str, Any]:
    return {"id": f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}", **question.fields, **fields}
