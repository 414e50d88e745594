"""How long agents took to load the last time on this machine, so that a command can say how long it will take."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from agents.errors import StorageError
from agents.models.checkpoints import cache_folder
from serving.files.atomic_files import write_json

LEAST = 5.0  # seconds; a shorter load needs no forecast
MOST = 200  # agents in the file, the latest


def usual_file() -> Path:
    """The file with the times, in the folder of what can be made again."""
    return cache_folder() / "loading.json"


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """The seconds of the last loads."""

    keys: Mapping[str, str]
    """By name of an agent or pair: what tells it from others, its digest and device."""
    path: Path
    """The file that keeps them."""

    def last(self, name: str) -> float | None:
        """The seconds that loading ``name`` took the last time; None where that is not known, or was short."""
        seconds = self._kept().get(self.keys.get(name, ""))
        return seconds if isinstance(seconds, float) else None

    def note(self, name: str, seconds: float) -> None:
        """Keep the seconds that ``name`` took. A file that cannot be written costs no more than a forecast."""
        if seconds < LEAST or name not in self.keys:
            return
        kept = self._kept()
        kept.pop(self.keys[name], None)
        latest = [*kept.items()][-(MOST - 1) :]
        with contextlib.suppress(OSError, StorageError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, dict(latest) | {self.keys[name]: round(seconds, 1)})

    def _kept(self) -> dict[str, object]:
        with contextlib.suppress(OSError, ValueError):
            kept = orjson.loads(self.path.read_bytes())
            if isinstance(kept, dict):
                return kept
        return {}
