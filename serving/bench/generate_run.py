"""One run of ``generate`` that is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.contract import Agent
from agents.errors import AgentStoppedError
from serving.bench.drawn_set import write_repeated
from serving.bench.progress import Progress, progress_of
from serving.bench.record_window import RecordWindow, read_window, with_pace_of_talks
from serving.bench.run_results import Repeat, Shares
from serving.bench.set_bench import SetBench
from serving.bench.usage import Sampler
from serving.generation.assignments import GenerateOptions
from serving.generation.generate import generate
from serving.generation.measurement import Measurement
from serving.runs.run import Run

STOPPED = 3  # the exit code of a run whose agent stopped
SHORTEST = 0.5  # a run that ends before this share of its seconds is repeated with more stimuli
MOST = 400_000  # stimuli of a measurement, however quickly they are answered


@dataclass(slots=True)
class GenerateRun:
    """One call of ``generate`` in a folder of its own."""

    bench: SetBench
    """What is measured."""
    name: str
    """The name of the agent, or the pair."""
    made: Mapping[str, Agent[Any]]
    """The agents by name, not loaded."""
    rows: list[bytes]
    """The stimuli as JSON."""
    replicas: int
    """Workers of each agent."""
    times: int
    """How often each stimulus is asked."""
    folder: Path
    """Where the set is written, and the run beside it."""
    _measurement: Measurement = field(init=False)
    _sampler: Sampler = field(init=False, default_factory=Sampler)

    def measure(self) -> RecordWindow | None:
        """Answer, and read what came of it; None where that is too little. Raises the errors of ``generate``,
        and AgentStoppedError."""
        source = self.folder / "set.jsonl"
        write_repeated(self.rows, self.times, source)
        bench = self.bench
        self._measurement = Measurement(bench.seconds)
        options = GenerateOptions(
            entries=bench.entries,
            settings=bench.settings,
            replicas=self.replicas,
            batch_size=bench.batch_size,
            address=bench.address,
            device=bench.device,
            source=source,
            agents=[self.name],
            out=self.folder / "run",
            quiet=True,
        )
        said: list[str] = []
        with self._sampler.running():
            code = generate(options, said.append, measurement=self._measurement)
        if code == STOPPED:
            raise AgentStoppedError("; ".join(said))
        measurement = self._measurement
        records = Run(options.out).records_path(self.name)
        window = read_window(records, measurement.answering, measurement.ended)
        return with_pace_of_talks(window, records) if window is not None and len(self.made) > 1 else window

    def more_needed(self) -> int:
        """How often the rows must be asked for the run to last long enough, up to :data:`MOST` stimuli."""
        measurement = self._measurement
        lasted = measurement.ended - measurement.answering
        if lasted >= SHORTEST * self.bench.seconds:
            return self.times
        wanted = self.times * self.bench.seconds / max(lasted, 1e-3)
        return max(self.times, int(min(wanted, MOST / len(self.rows))))

    def progress(self) -> Progress:
        """How far the run came, where that was too little."""
        measurement = self._measurement
        run = Run(self.folder / "run")
        seconds = measurement.ended - measurement.answering
        return progress_of(run.records_path(self.name), run.journal_path(self.name), self.rows, seconds)

    def gpus_in_use(self, window: RecordWindow) -> int:
        """GPUs in use by all workers."""
        return self._measurement.gpus

    def as_repeat(self, window: RecordWindow) -> Repeat:
        """What was measured."""
        measurement = self._measurement
        passed = measurement.ended - measurement.answering
        workers = {}
        for name, seconds in measurement.responding_s.items():
            declared = self.made[name].declaration()
            at_once = declared.max_in_flight if declared.batches_by_itself else 1
            workers[name] = [min(1.0, spent / passed / at_once) for spent in seconds.values()]
        threads = sum(len(seconds) * measurement.threads[name] for name, seconds in measurement.responding_s.items())
        usage = self._sampler.between(measurement.answering, measurement.ended)
        shares = Shares(
            workers=workers,
            preparing=min(1.0, window.preparing_s * window.rate_s / threads),
            writing=min(1.0, measurement.writing_s / passed),
            process=usage.process,
            cores=usage.cores,
            run_cores=usage.run_cores,
            gpus=[*usage.gpus],
        )
        return Repeat.of(window, shares, usage, measurement.answering - measurement.started)
