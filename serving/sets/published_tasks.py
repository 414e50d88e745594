"""The published benchmark's names of tasks, which are also the names of its files."""

from pathlib import Path

from agents.errors import InputError
from agents.stimuli import Task

SHORT_IN_FILES: dict[str, Task] = {  # the published benchmark's names of tasks
    "caption": "image_captioning",
    "word": "word_association",
    "color": "color_estimation",
    "object": "object_detection",
    "fv": "attention_prediction",
}


def task_of_file(path: Path, task: str | None) -> Task:
    """``task``, else the task in the file's name. Raises InputError where neither says it, and for conversations, of
    which no table and no benchmark's file holds any."""
    tasks: dict[str, Task] = {**SHORT_IN_FILES, "attention": "attention_prediction"}
    tasks |= {name: name for name in SHORT_IN_FILES.values()}
    name = (task or path.stem).lower()
    if name in tasks:
        return tasks[name]
    names = ", ".join(
        [*SHORT_IN_FILES, "attention"] if task is None else ["caption", "word", "color", "object", "attention"]
    )
    if task is None:
        names += ", judgement"
        raise InputError(f"the file's name, {path.stem!r}, says no task; say with --task which: {names}")
    raise InputError(
        f"holds no {task} in a form that is read: a table or a benchmark's file has answers to {names}. Conversations "
        "are read from Topical-Chat's JSON, from chats with a model, and from pages, `import page.html --name A~B`"
    )
