"""An agent that says which GPU it was given, where there is none."""

import os
import sys
import types
from collections.abc import Sequence
from typing import Any

from agents.answers import WordAnswer
from agents.contract import GIB, MIB, Agent, Draw, Reply, Settings
from agents.models import loading


class PlacedSettings(Settings):
    """What it declares: GiB of each of so many GPUs."""

    gib: float = 6.0
    devices: int = 1


class Placed(Agent[PlacedSettings]):
    """Runs on a GPU as far as the scheduler can see."""

    tasks = ("word_association",)
    Settings = PlacedSettings
    memory = 64 * MIB

    def __init__(self, settings: PlacedSettings, name: str) -> None:
        super().__init__(settings, name)
        self.device_memory = int(settings.gib * GIB)
        self.devices = settings.devices

    def use_devices(self, count: int) -> None:
        self.devices = count

    def open(self) -> None:
        """Stand in for torch, which would take its seconds to say that there is no CUDA."""
        torch: Any = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(set_per_process_memory_fraction=lambda *told: None)
        sys.modules["torch"] = torch
        loading.use_full_float32 = lambda kind: None
        loading.gpu_provenance = dict

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        word = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
        return [Reply(WordAnswer(word=word), {"pid": os.getpid()}) for _ in batch]
