"""What an agent declares: by ``declares``, by the class variables of version 0.2, and by its settings."""

import inspect
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import pydantic
import pytest
from pydantic import ValidationError

from agents.answers import WordAnswer
from agents.capabilities import (
    BatchesByItself,
    Fetching,
    Keyed,
    Prompted,
    SeveralGPUs,
    Templated,
    WithCheckpoint,
    checkpoint_of,
    device_bytes,
    identity_of,
    limits_of,
    provenance_of,
)
from agents.contract import GIB, MIB, Agent, Declaration, Draw, Filter, Finding, Reply, Settings, Verdict
from agents.errors import UnavailableError
from agents.stimuli import MODES, Stimulus, WordStimulus

VERBS = {"missing", "open", "load", "prepare", "respond", "close"}


class Base(Agent[Settings]):
    """Declares most."""

    declares = Declaration(tasks=("word_association",), memory=3 * GIB, batch_size=5)
    Settings = Settings


class Engine(Agent[Settings]):
    """Says how it is asked, and of the memory something else."""

    declares = Declaration(max_in_flight=7, memory=4 * GIB)


class Both(Base, Engine):
    """Says one thing of its own."""

    declares = Declaration(batch_size=6)


def test_a_class_declares_what_differs_from_its_bases_in_their_order() -> None:
    expected = {"tasks": ("word_association",), "memory": 3 * GIB, "batch_size": 6, "max_in_flight": 7}
    assert Both.declares.model_dump(exclude_defaults=True) == expected
    assert Both(Settings(), "both").declaration() == Both.declares
    assert Base.declares.batch_size == 5  # a subclass changes no base


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="memroy"):
        Declaration(memroy=GIB)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="memroy"):
        Base.declares.replace(memroy=GIB)
    with pytest.raises(ValidationError):
        Base.declares.memory = 1  # type: ignore[misc]


def test_an_agent_has_six_verbs_and_says_what_it_declares() -> None:
    public = {name for name in vars(Agent) if not name.startswith("_") and inspect.isfunction(getattr(Agent, name))}
    assert public == {*VERBS, "declaration"}


def test_an_agent_without_settings_of_its_own_needs_no_class_of_them() -> None:
    class Plain(Agent[Settings]):
        declares = Declaration(tasks=("word_association",))

    assert Plain(Plain.Settings(), "plain").settings.identity() == {}


# An agent in the words of version 0.2, as its documentation had them: class variables, attributes of the object, a
# filter's Verdict.


class OldSettings(Settings):
    """Everything that can change an answer."""

    suffix: str = "!"
    devices: int = 1


class Old(Agent[OldSettings]):
    """Says the cue again."""

    tasks = ("word_association",)
    Settings = OldSettings
    packages = ("no_such_module",)
    extra = "language"
    memory = 64 * MIB
    batch_size = 256
    max_in_flight = 4

    def __init__(self, settings: OldSettings, name: str) -> None:
        super().__init__(settings, name)
        self.device_memory = 2 * GIB
        self.devices = settings.devices
        self.attempts = 3
        self.filters: Sequence[Filter] = (self._noted,)

    def _noted(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return Verdict("noted", False, str(reply.raw))

    def checkpoint(self) -> tuple[str | None, str | None]:
        return "echo", "1"

    def environment(self) -> tuple[str, ...]:
        return ("ECHO_KEY",)

    def use_devices(self, count: int) -> None:
        self.devices = count

    def prepare(self, stimulus: Stimulus) -> str:
        assert isinstance(stimulus, WordStimulus)
        return stimulus.cue

    async def respond_one(self, prepared: str, draw: Draw) -> Reply:
        return Reply(WordAnswer(word=prepared + self.settings.suffix), raw=prepared)

    def provenance(self) -> dict[str, Any]:
        return {"echo": 1}


class OldOne(Agent[Settings]):
    """Answers one at a time and says nothing else."""

    tasks = ("word_association",)
    modes = ("free",)

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        return Reply(WordAnswer(word="a"))


def test_an_agent_of_version_0_2_declares_by_its_attributes() -> None:
    agent = Old(OldSettings(devices=2), "old")
    declared = agent.declaration()
    assert (declared.tasks, declared.modes) == (("word_association",), MODES)
    assert (declared.memory, declared.device_memory, declared.devices) == (64 * MIB, 2 * GIB, 2)
    assert (declared.batch_size, declared.max_in_flight, declared.attempts) == (256, 4, 3)
    [look] = declared.filters
    stimulus = WordStimulus(id="a", task="word_association", cue="sun")
    assert look(stimulus, Reply(WordAnswer(word="sun!"), "sun")) == Finding("noted", False, "sun")
    agent.use_devices(4)
    assert agent.declaration().devices == 4
    assert "turinglike[language]" in str(agent.missing())


def test_a_module_without_a_version_has_that_of_its_package() -> None:
    import wordfreq

    assert not hasattr(wordfreq, "__version__")

    class Counting(Old):
        declares = Declaration(reports=("pydantic", "wordfreq"))

    versions = {"pydantic": pydantic.__version__, "wordfreq": metadata.version("wordfreq")}
    assert provenance_of(Counting(OldSettings(), "counting")) == {**versions, "echo": 1}


@pytest.mark.parametrize(("module", "why"), [("colorsys", "has no version"), ("nowhere", "No module named 'nowhere'")])
def test_a_report_without_a_version_names_the_declaration(module: str, why: str) -> None:
    class Counting(Old):
        declares = Declaration(reports=(module,))

    with pytest.raises(UnavailableError, match=rf"agent counting: its declaration reports {module}, .*{why}"):
        provenance_of(Counting(OldSettings(), "counting"))


def test_an_agent_of_version_0_2_has_the_capabilities_whose_methods_it_has() -> None:
    agent = Old(OldSettings(), "old")
    for capability in (BatchesByItself, Keyed, SeveralGPUs, WithCheckpoint):
        assert isinstance(agent, capability)
    for other in (Fetching, Prompted, Templated):
        assert not isinstance(agent, other)
    assert checkpoint_of(agent) == ("echo", "1")
    assert provenance_of(agent) == {"echo": 1}
    assert identity_of(agent) == {"suffix": "!", "devices": 1}
    assert (device_bytes(agent, 8), limits_of(agent)) == (2 * GIB, [])


def test_an_agent_that_answers_one_at_a_time_need_not_say_so() -> None:
    assert OldOne.declares.max_in_flight == 1
    assert OldOne.declares.batches_by_itself
    assert OldOne.declares.is_elsewhere
    assert OldOne.declares.modes == ("free",)
    assert not Base.declares.batches_by_itself
