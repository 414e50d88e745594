"""Studies of online tests, with participants and machines in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.study.log.state import Judge
from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers.study_folders import changed, lobby_of

NO_DELAY = {"base": 0.0, "type_mean": 0.0, "type_sd": 0.0, "read_mean": 0.0, "read_sd": 0.0, "think_scale": 0.0}
AGENTS = {"machine_argues": "argues", "machine_deceives": "deceives"}


def made(folder: Path, preset: str = "online", **given: Any) -> Path:
    """A study of tests with some lines of ``study.toml`` changed; none may lack."""
    assert main(["study", "new", "--preset", preset, "-o", str(folder / "study")]) == 0
    machines = AGENTS if preset == "online" else {"machines": ["deceives"], "quiet_s": 0.0}
    values = {"before": [], "after": [], "seed": 0, **machines, **NO_DELAY, **given}
    return changed(folder / "study", **values)


async def take_part(study: ServedStudy, judge: Judge, name: str, human: int = 1) -> list[dict[str, Any]]:
    """Do whatever is awaited until the test ends; returns all that was seen."""
    lobby = lobby_of(study)
    seen = list[dict[str, Any]]()
    version = ""
    while True:
        found = await lobby.at(judge, version)
        version = found["version"]
        seen.append(found)
        if found["state"] in ("over", "void", "nobody"):
            return seen
        if found["state"] == "open" and found["act"]:
            said = {"test": found["test"], "act": found["act"], "turn": found["turn"]}
            said |= {"text": f"{name} {found['turn']}", "human": human, "reason": "because"}
            for _ in range(2):  # what is sent twice is done once
                refused = await lobby.move(judge, said)
                if refused is not None:  # the other may leave at any moment, also between the two
                    assert refused == "test_void"
                    assert (await lobby.at(judge, ""))["state"] == "void"


def replies(monkeypatch: pytest.MonkeyPatch, said: Callable[[str, dict[str, Any]], Any] | None = None) -> list[Any]:
    """Machines that answer here; returns the requests."""
    asked = []

    async def post(client: Any, server: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append((server, body))
        agent = body["agent"]
        row = body["stimulus"]
        text = f"{agent} {len(row.get('history', ()))}" if said is None else said(agent, row)
        return {"answer": text if isinstance(text, dict) else {"messages": [{"text": text}]}}

    monkeypatch.setattr("judging.study.meetings.agent_server.AgentClient.record", post)
    monkeypatch.setattr("judging.study.meetings.agent_server.PAUSE", 0.0)
    served = {name: ["conversation"] for name in AGENTS.values()}
    monkeypatch.setattr("judging.study.meetings.material.served_agents", lambda server: (served, ""))
    return asked
