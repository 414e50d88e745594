"""What participants of online tests are shown beside the tests themselves."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from judging.study.agent_server import served_agents
from judging.study.material import Seen
from judging.study.page_answers import BadAnswer
from judging.study.settings import Batch, MachineAgents, OnlineSettings
from judging.study.state import Judge, Step


class OnlineMaterial:
    """A study of online tests has no set: what is shown is what participants say."""

    def __init__(self, settings: OnlineSettings) -> None:
        self.settings = settings
        self.sha256 = hashlib.sha256(b"online").hexdigest()

    def problems(self) -> list[str]:
        return [
            f"agents.{name}: name the agent; tests.person_deceives = {self.settings.tests.person_deceives:g} needs it"
            for name in self._machines()
            if not getattr(self.settings.agents, name)
        ]

    def _machines(self) -> list[str]:
        """Which of the machines' parts there are."""
        tests = self.settings.tests
        asked = {"machine_argues": tests.person_deceives > 0, "machine_deceives": tests.person_deceives < 1}
        return [name for name, is_asked in asked.items() if is_asked and tests.two_people < 1]

    def batch_problems(self) -> list[str]:
        """What a batch without people lacks beside that."""
        tests, batch = self.settings.tests, self.settings.batch
        with_person = tests.two_machines < 1
        asked: Mapping[str, bool] = {
            "questions": True,
            "verdicts": True,
            "person_deceives": with_person and tests.person_deceives > 0,
            "person_argues": with_person and tests.person_deceives < 1,
        }
        return [
            f"batch.{name}: name the agent" for name, is_asked in asked.items() if is_asked and not getattr(batch, name)
        ]

    def served_problems(self, *, with_batch: bool = True) -> list[str]:
        """Which of the machines, and of the agents that are named for a batch, their servers do not have for that."""
        found: list[str] = []
        tables: dict[str, MachineAgents | Batch] = {"agents": self.settings.agents}
        tables |= {"batch": self.settings.batch} if with_batch else {}
        for table, names in tables.items():
            parts = self._machines() if table == "agents" else list(Batch.model_fields)
            wanted = {one: name for one, name in names if one in parts and one != "server" and name}
            there, why = served_agents(names.server) if wanted else ({}, "")
            for one, name in wanted.items():
                task = "judgement" if one == "verdicts" else "conversation"
                if name not in there:
                    found.append(f"{table}.{one}: {why or f'{names.server} does not serve {name}'}")
                elif task not in there[name]:
                    found.append(f"{table}.{one}: {name} answers {', '.join(there[name])}, not {task}")
        return found

    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        test: Step = {"kind": "test", "trials": [], "phase": "test", "again": False}
        return [dict(test) for _ in range(self.settings.tests.each)]

    def stimulus_of(self, step: Step) -> str:
        return ""

    def read(self, judge: Judge, step: Step, said: dict[str, Any]) -> dict[str, Any]:
        if said:
            raise BadAnswer("has parts that no page sends")
        return {}

    def instructions(self, judge: Judge) -> dict[str, Any]:
        return {"trials": judge.counted(), "tests": True, "practice": 0, "feedback": 0, "samples": [], "four": True}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {"words_below": self.settings.tests.words_below, "practice": False}

    def truth(self, step: Step) -> list[str] | None:
        return None

    def files(self, step: Step) -> list[str]:
        return []

    def common_files(self) -> list[str]:
        return []

    def path(self, name: str) -> Path:
        raise AssertionError("no participant has a file")
