"""The published test's words as one file for ``turinglike import``: people's, and the machines' of the 2022 paper.

    python scripts/published_words.py PEOPLE.json word.json [--as-printed]

People's words are JSON, {"associations": {cue: [word, ...]}}, from benchmarking/groundtruth_dictionaries/word.json of
kreimanlab/TuringTest; the machines' are in examples/words_published.json. With ``--as-printed`` the paper's column of
GPT-3 davinci stands there too, which repeats GPT-2's in all 150 rows. The file has the published ground truth's form.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import orjson

PUBLISHED = Path(__file__).resolve().parents[1] / "examples" / "words_published.json"


def main() -> int:
    parser = argparse.ArgumentParser(description="The published words, people's and machines', as one file.")
    parser.add_argument("people", type=Path, metavar="PEOPLE.json")
    parser.add_argument("out", type=Path, metavar="word.json")
    parser.add_argument("--as-printed", action="store_true", help="with davinci's column, which is GPT-2's")
    options = parser.parse_args()
    try:
        people = orjson.loads(options.people.read_bytes())["associations"]
        machines = orjson.loads(PUBLISHED.read_bytes())["answers"]
        said = {cue: [("human", "", word) for word in words] for cue, words in people.items()}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        print(
            f"published_words: {options.people}: {error!r}: want {{'associations': {{cue: [word]}}}}", file=sys.stderr
        )
        return 2
    unknown = said.keys() - machines.keys()
    if unknown:
        print(f"published_words: no machine answered {', '.join(sorted(unknown)[:20])}", file=sys.stderr)
        return 2
    for cue, rows in said.items():
        of_machines = machines[cue] | ({"gpt3-davinci": machines[cue]["gpt2"]} if options.as_printed else {})
        rows += [("machine", name, word) for name, word in of_machines.items()]
    truth = {
        cue: [
            {
                "cueWord": cue,
                "response": word,
                "groundtruth": kind,
                "human_groundtruth": "",
                "machine_groundtruth": name,
            }
            for kind, name, word in rows
        ]
        for cue, rows in said.items()
    }
    options.out.write_bytes(orjson.dumps(truth, option=orjson.OPT_INDENT_2))
    print(f"{options.out}: {len(truth)} cues, {sum(map(len, truth.values())):,} words")
    return 0


if __name__ == "__main__":
    sys.exit(main())
