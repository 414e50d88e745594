"""What programs of models share: the set that they read, the texts that they write, and the time of each part."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Times:
    """Seconds, and CPU seconds of this process, by part."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds what the block takes."""
        began = time.perf_counter()
        cpu = time.process_time()
        yield
        spent = self.parts.setdefault(name, {"seconds": 0.0, "cpu": 0.0})
        spent["seconds"] += time.perf_counter() - began
        spent["cpu"] += time.process_time() - cpu

    def tell(self) -> None:
        """Prints all parts as the last line of stdout."""
        print(json.dumps(self.parts), flush=True)


def read(path: str) -> list[Row]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def by_kind(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each ``kind``, in order."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    return kinds


def write(path: str, answers: list[Row]) -> None:
    """Adds rows to a JSONL file."""
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
