"""The papers' agents that can stand on a card's scale of detectability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.stimuli import Asked
from judging.cards.card import PublishedAgent
from judging.scores.papers.published import published

ON_SCALE = ("p_human", "p_machine", "detectability")  # other figures, as pass rates, are of other designs
DISPUTED = ("contradict", "the other way round", "constant of the published benchmark")  # in the note of a figure


def published_agents(task: Asked) -> list[PublishedAgent]:
    """The agents of the papers whose figures can stand on the scale of detectability.

    Where a paper prints an agent's detectability, that is it. Else it is the mean of the printed p(H|H) of the task and
    p(M|M) of the agent, by the same kind of judges; agents without one of the two are left out. So are figures that
    another figure of the same paper contradicts."""
    cells = [cell for cell in published()["cells"] if cell["asked"] == task and "only" not in cell]
    cells = [cell for cell in cells if cell["measure"] in ON_SCALE]
    cells = [cell for cell in cells if not _is_disputed(cell)]
    of_people = {(cell["paper"], cell["judge"]): cell for cell in cells if cell["measure"] == "p_human"}
    found: dict[tuple[str, str, str], PublishedAgent] = {}
    for cell in sorted(cells, key=lambda cell: cell["measure"] != "p_machine"):  # a printed detectability goes before
        key = (cell["paper"], cell["judge"], cell["agent"])
        value = cell["value"]
        source = str(cell["source"])
        notes = [cell.get("note", "")]
        if cell["measure"] == "p_human":
            continue
        if cell["measure"] == "p_machine":
            people = of_people.get(key[:2])
            if people is None:
                continue
            value = (people["value"] + value) / 2
            source = f"p(H|H): {people['source']}; p(M|M): {source}"
            notes.append(people.get("note", ""))
        found[key] = PublishedAgent(
            task=task,
            agent="all agents" if cell["agent"] == "all" else cell["agent"],
            paper=cell["paper"],
            kind=cell["judge"],
            detectability=value,
            is_mean=cell["measure"] == "p_machine",
            source=source,
            note="; ".join(note for note in dict.fromkeys(notes) if note),
        )
    return sorted(found.values(), key=lambda agent: (agent.paper, agent.kind, agent.agent))


def _is_disputed(cell: Mapping[str, Any]) -> bool:
    """Whether the papers print something else of the same, or p(H|H) and p(M|M) the other way round."""
    note = cell.get("note", "")
    return any(word in note for word in DISPUTED)
