"""Puts the helpers beside these tests on the path: :mod:`run_folders`."""

from __future__ import annotations

import sys
from pathlib import Path

HELPERS = str(Path(__file__).parent)
if HELPERS not in sys.path:
    sys.path.insert(0, HELPERS)
