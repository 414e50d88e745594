"""No-op stimuli by Ray Data: ``ray_data.py SET OUT TEMPLATE``. It writes the records that ``generate`` writes for SET.

TEMPLATE is a record of ``generate``: what its other fields hold is taken from there.
"""

import datetime
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import ray
import ray.data


def main(source: str, out: str, template: str) -> None:
    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=256 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    record = json.loads(Path(template).read_bytes())

    def answer(batch: dict[str, Any]) -> dict[str, Any]:
        rows = list(zip(batch["id"], batch["cue"], strict=True))
        texts = [f'{{"cue":"{cue}","id":"{name}","task":"word_association"}}' for name, cue in rows]
        digests = [hashlib.sha256(f'[1,0,"null","{name}",0,null,0]'.encode()).digest() for name, _ in rows]
        seeds = [int.from_bytes(digest[:8], "big") >> 11 for digest in digests]
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            **{name: [value] * len(rows) for name, value in record.items()},
            "stimulus": batch["id"],
            "stimulus_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
            "seed": seeds,
            "answer": [{"word": f"{seed:x}", "candidates": None, "skipped": []} for seed in seeds],
            "raw": [f"{seed:x}" for seed in seeds],
            "created": [now] * len(rows),
        }

    ray.data.read_json(source, lines=True).map_batches(answer, batch_size=1024, concurrency=1).write_json(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
