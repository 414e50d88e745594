"""The first page of a large index, which the page shows while it reads the rest."""

from collections.abc import Mapping
from typing import Any

import numpy as np

ROWS = 25  # on the page's first screen
LARGE = 20_000  # records: a smaller index comes in one piece


def first_rows(index: Mapping[str, Any]) -> dict[str, Any]:
    """The index cut to its first rows, in the same form. ``size`` has the numbers of rows and records of the whole;
    pictures stand by number. What its first screen does not show is left out."""
    stimuli = index["stimuli"]
    kept = np.flatnonzero(np.asarray(stimuli["row"]) < ROWS)
    bounds = np.asarray(stimuli["first"]).astype(np.int64)
    records = np.concatenate([np.arange(bounds[at], bounds[at + 1]) for at in kept])
    columns = {name: np.asarray(column)[records] for name, column in index["records"].items()}
    texts, columns["text"] = np.unique(columns["text"], return_inverse=True)
    numbers = {name: [column[at] for at in kept] for name, column in stimuli.items() if name != "first"}
    pictures = {number for number in numbers["picture"] if number >= 0}
    return {
        **{name: index[name] for name in ("title", "stamp", "made", "notices", "agents", "people", "tasks", "flags")},
        **{name: index[name] for name in ("counts", "progress")},
        "size": [len(index["rows"]), len(index["records"]["agent"])],
        "rows": index["rows"][:ROWS],
        "texts": [index["texts"][at] for at in texts],
        "stimuli": {**numbers, "first": np.concatenate([[0], np.cumsum(np.diff(bounds)[kept])])},
        "records": columns,
        "meta": [[name, values, np.asarray(codes)[kept]] for name, values, codes in index["meta"]],
        "pictures": {str(number): index["pictures"][number] for number in sorted(pictures)},
    }
