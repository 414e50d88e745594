"""What a request of OpenAI's interface asks, whichever of its routes it comes by, and the stimulus: a history, an
image's task, or a cue (the last message)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.contract import derive_seed
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import checked_stimulus, from_base64
from serving.http.errors import ApiError, invalid
from serving.http.openai_messages import History
from serving.http.service import Service

IMAGE_TASKS: tuple[Task, ...] = (
    "image_captioning",
    "color_estimation",
    "object_detection",
    "attention_prediction",
)
TEXT_TASKS: tuple[Task, ...] = ("conversation", "word_association")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    ``place`` is the request's field with the texts, ``fields`` more of the stimulus, ``ignored`` names all that has no
    effect."""

    model: str
    place: str
    history: History
    ignored: list[str]
    fields: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    count: int = 1
    stop: Sequence[str] = ()


def stimulus_of_question(service: Service, asked: Question) -> tuple[Stimulus, Mapping[str, bytes] | None]:
    """A question's stimulus and images, for a thread of its own as :func:`from_base64`. Raises ApiError."""
    image = asked.history.image
    likely = TEXT_TASKS if image is None else IMAGE_TASKS
    task = asked.fields.get("task") or _first_task(service, asked.model, likely)
    if task not in likely:
        raise invalid([(asked.place, f"this task {'needs an image' if image is None else 'takes no image'}")])
    if task == "conversation":
        return _conversation(service, asked), None
    if image is None:
        _, cue = asked.history.turns[-1]
        return checked_stimulus(_row(asked, "cue", cue.encode(), task=task, cue=cue), {}), None
    place, text = image
    files = {"image": from_base64(text, place)}
    return checked_stimulus(_row(asked, "image", files["image"], task=task, image="image"), files), files


def _first_task(service: Service, name: str, likely: Sequence[Task]) -> Task:
    tasks = service.agent(name).declaration().tasks
    for task in likely:
        if task in tasks:
            return task
    wanted = "images" if likely is IMAGE_TASKS else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(tasks)}: {wanted} is not for it")


def _conversation(service: Service, asked: Question) -> Stimulus:
    turns = asked.history.turns
    first_side, first_text = turns[0]
    row = _row(asked, "chat", first_text.encode(), task="conversation", type="HM")
    stimulus = checked_stimulus(row, {})
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if asked.seed is None else asked.seed
    names = draw_scenario(stimulus, derive_seed(run_seed, asked.model, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in turns]
    return checked_stimulus({**row, "names": names, "who_starts": first_side, "history": history}, {})


def _row(asked: Question, kind: str, content: bytes, **fields: Any) -> dict[str, Any]:
    return {"id": f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}", **asked.fields, **fields}
