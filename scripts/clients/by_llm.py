"""llm, the command: models named in its extra-openai-models.yaml."""

import json
import os
import subprocess
import sys
from pathlib import Path

from calls import FIRST, FOLDER, KEY, NEXT_REPLY, SECOND, SEED, SEEDED, URL, attempt, same

os.environ |= {"LLM_USER_PATH": FOLDER, "OPENAI_API_KEY": KEY}
model = {"model_id": "tl", "model_name": "eliza", "api_base": URL, "supports_schema": True}
Path(FOLDER, "extra-openai-models.yaml").write_text(json.dumps([model]))  # JSON is YAML
Path(FOLDER, "logs.db").unlink(missing_ok=True)


def llm(*arguments):
    done = subprocess.run([sys.executable, "-m", "llm", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.removesuffix("\n")


attempt("stream", lambda: llm("-m", "tl", FIRST))
attempt("-c", lambda: llm("-m", "tl", "-c", SECOND), NEXT_REPLY)
attempt("--no-stream", lambda: llm("-m", "tl", "--no-stream", FIRST))
attempt("seed", lambda: same(lambda: llm("-m", "tl", "-o", "seed", str(SEED), FIRST)), sends=SEEDED)
attempt("system, options", lambda: llm("-m", "tl", "-s", "Be kind.", "-o", "temperature", "0.5", FIRST))
attempt("--schema", lambda: llm("-m", "tl", "--schema", "mood, cause", FIRST), refused=400)
