"""Turinglike's agents, each loaded once in this process: ``loaded.py SETTINGS OUT KIND=AGENT=SET...``, SETTINGS by
agent as JSON."""

import json
import sys

from timed import Times, write

times = Times()


def main(settings: str, out: str, *asked: str) -> None:
    with times.part("loading"):
        from serving import load
    for named in asked:
        kind, agent, source = named.split("=", 2)
        with times.part("loading"):
            agents = load(agent, settings=json.loads(settings), device="cpu")
        with agents:
            with times.part(kind):
                records = agents.answer(source)
            write(out, [record.model_dump(mode="json", by_alias=True) for record in records])
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
