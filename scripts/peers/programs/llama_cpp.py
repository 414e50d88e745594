"""Texts by llama.cpp's server with four slots: ``llama_cpp.py FILE.gguf REQUESTS OUT THREADS``."""

import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from timed import Row, Times, by_kind, read, write

SLOTS = 4
POSITIONS = 2048  # of a slot

times = Times()


def main(file: str, requests: str, out: str, threads: str) -> None:
    with times.part("loading"):
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = file
        parameters.port = 0
        parameters.n_ctx = SLOTS * POSITIONS
        parameters.n_parallel = SLOTS
        parameters.cpuparams.n_threads = int(threads)
        parameters.cpuparams_batch.n_threads = int(threads)
        server = xllamacpp.Server(parameters)
    url = f"{server.listening_address}/v1/chat/completions"

    def ask(row: Row) -> Row:
        names = ("messages", "max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty", "stop")
        body = {name: row[name] for name in names} | {"seed": row["seed"] % 2**31, "top_k": 0, "min_p": 0}
        asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=900) as reply:
            answer = json.load(reply)
        said = answer["choices"][0]
        counts = {"prompt_tokens": answer["usage"]["prompt_tokens"], "tokens": answer["usage"]["completion_tokens"]}
        return {"id": row["id"], "text": said["message"]["content"], "finish": said["finish_reason"], **counts}

    with ThreadPoolExecutor(SLOTS) as pool:
        for kind, rows in by_kind(read(requests)).items():
            with times.part(kind):
                write(out, list(pool.map(ask, rows)))
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
