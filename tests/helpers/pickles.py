"""Pickles that do something."""

import os
from pathlib import Path
from typing import Any


class Armed:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)
