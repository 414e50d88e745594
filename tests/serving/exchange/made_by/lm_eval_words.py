"""Makes the samples of lm-eval with its own dummy model: python lm_eval_words.py FOLDER, with lm-eval 0.4.13."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TASK = """task: words
dataset_path: json
dataset_kwargs:
  data_files:
    test: words.jsonl
test_split: test
output_type: generate_until
doc_to_text: "{{cue}}"
doc_to_target: "{{word}}"
generation_kwargs:
  until: ["\\n"]
metric_list:
  - metric: exact_match
"""
WORDS = [("table", "chair"), ("deep, sea", "fish"), ("Müll", "rubbish")]

work = Path(tempfile.mkdtemp())
(work / "words.yaml").write_text(TASK, encoding="utf-8")
lines = [json.dumps({"cue": cue, "word": word}) + "\n" for cue, word in WORDS]
(work / "words.jsonl").write_text("".join(lines), encoding="utf-8")
command = [sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--tasks", "words", "--include_path", "."]
command += ["--log_samples", "--output_path", "out"]
environment = {**os.environ, "HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1"}
subprocess.run(command, cwd=work, env=environment, check=True)
[path] = work.glob("out/**/samples_*.jsonl")
shutil.copy(path, Path(sys.argv[1]) / "lm-eval-0.4.13.jsonl")
shutil.rmtree(work)
