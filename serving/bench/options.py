"""The options of ``turinglike bench``, and which of them go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.errors import InputError
from agents.stimuli import Mode, Task
from serving.scheduling.placement import DeviceChoice

SECONDS = 5.0
MINUTES = 1.0
REPLICAS = (1,)
CONNECTIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The command's options. None: the option was not given, and its default holds."""

    what: Sequence[str] = ()
    """Without ``agents`` the agents that are measured alone; with it the set, or nothing."""
    agents: str | None = None
    """The agents and pairs that are measured over a set, with commas between them."""
    settings: Sequence[str] = ()
    """Settings of agents as NAME.SETTING=VALUE."""
    config: Path | None = None
    """A file with settings."""
    device: DeviceChoice = "auto"
    """Where agents run."""
    task: Task | None = None
    """The task that is measured; of a set that of rows without one."""
    mode: Mode | None = None
    """The viewing mode that is measured."""
    out: Path | None = None
    """The folder that gets the results; None: stdout."""
    compare: Path | None = None
    """The results of an earlier call."""
    sizes: tuple[int, ...] | None = None
    """Agents alone: batch sizes."""
    seconds: float | None = None
    """Agents alone: seconds for each batch size."""
    replicas: tuple[int, ...] | None = None
    """Over a set: numbers of workers."""
    minutes: float | None = None
    """Over a set: minutes of answering for each agent and number of workers."""
    address: str | None = None
    """Over a set: the address of a Ray cluster."""
    batch_size: int | None = None
    """Over a set: the largest number of stimuli in a batch."""
    http: bool = False
    """Over a set: ask by HTTP."""
    connections: int | None = None
    """By HTTP: requests under way at once."""
    for_answers: int | None = None
    """Over a set: for how many answers there is a forecast; None: for the whole set."""
    price_hour: float | None = None
    """Over a set: the price of an hour of a GPU, or of the machine without one."""
    price_token: float | None = None
    """Over a set: the price of a token that is written."""

    @property
    def source(self) -> Path | None:
        """The set; None: the program's own stimuli."""
        return Path(self.what[0]) if self.what else None

    def check(self) -> None:
        """Raises InputError for options that do not go together."""
        over_set = {
            "--replicas": self.replicas,
            "--minutes": self.minutes,
            "--address": self.address,
            "--batch-size": self.batch_size,
            "--http": self.http or None,
            "--connections": self.connections,
            "--for": self.for_answers,
            "--price-hour": self.price_hour,
            "--price-token": self.price_token,
        }
        alone = {"--batch-sizes": self.sizes, "--seconds": self.seconds}
        if self.agents is None:
            if not self.what:
                raise InputError("give the agents to measure, or --agents with a set")
            given = [name for name, value in over_set.items() if value is not None]
            if given:
                raise InputError(f"{', '.join(given)}: only with --agents, which measures agents over a set")
            return
        given = [name for name, value in alone.items() if value is not None]
        if given:
            raise InputError(f"{', '.join(given)}: only without --agents, where each agent is measured alone")
        if len(self.what) > 1:
            raise InputError(f"give one set, not {len(self.what)}: agents stand after --agents, with commas")
        if self.connections is not None and not self.http:
            raise InputError("--connections: only with --http")
        if self.http and self.address is not None:
            raise InputError("--http: the server that is measured starts Ray itself; leave --address out")
