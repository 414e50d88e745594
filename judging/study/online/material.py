"""What participants of online tests are shown beside the tests themselves."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping
from typing import Any

from judging.study.agent_server import served_agents
from judging.study.material import Material, Seen
from judging.study.page_answers import BadAnswer
from judging.study.settings import Batch, MachineAgents, OnlineSettings
from judging.study.state import Judge, Step


class OnlineMaterial(Material):
    """A study of online tests has no set: participants see what the others write."""

    settings: OnlineSettings

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
        """The machines' parts that the tests have."""
        tests = self.settings.tests
        parts = {"machine_argues": tests.person_deceives > 0, "machine_deceives": tests.person_deceives < 1}
        return [name for name, is_played in parts.items() if is_played and tests.two_people < 1]

    def batch_problems(self) -> list[str]:
        """The parts that a batch without people lacks beside that."""
        tests, batch = self.settings.tests, self.settings.batch
        with_person = tests.two_machines < 1
        parts: Mapping[str, bool] = {
            "questions": True,
            "verdicts": True,
            "person_deceives": with_person and tests.person_deceives > 0,
            "person_argues": with_person and tests.person_deceives < 1,
        }
        return [
            f"batch.{name}: name the agent"
            for name, is_played in parts.items()
            if is_played and not getattr(batch, name)
        ]

    def served_problems(self, *, with_batch: bool = True) -> list[str]:
        """The machines, and agents of a batch, that their servers do not have for their part."""
        problems: list[str] = []
        tables: dict[str, MachineAgents | Batch] = {"agents": self.settings.agents}
        tables |= {"batch": self.settings.batch} if with_batch else {}
        for table, names in tables.items():
            parts = self._machines() if table == "agents" else list(Batch.model_fields)
            wanted = {part: name for part, name in names if part in parts and part != "server" and name}
            served, reason = served_agents(names.server) if wanted else ({}, "")
            for part, name in wanted.items():
                task = "judgement" if part == "verdicts" else "conversation"
                if name not in served:
                    problems.append(f"{table}.{part}: {reason or f'{names.server} does not serve {name}'}")
                elif task not in served[name]:
                    problems.append(f"{table}.{part}: {name} answers {', '.join(served[name])}, not {task}")
        return problems

    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        test: Step = {"kind": "test", "trials": [], "phase": "test", "again": False}
        return [dict(test) for _ in range(self.settings.tests.each)]

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        if answer:
            raise BadAnswer("has parts that no page sends")
        return {}

    def instructions(self, judge: Judge) -> dict[str, Any]:
        return {"trials": judge.counted(), "tests": True, "practice": 0, "feedback": 0, "samples": [], "four": True}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {"words_below": self.settings.tests.words_below, "practice": False}
