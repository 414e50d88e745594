"""lm-eval, the command, with a task of one line: its models for chats and for completions."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from calls import FIRST, FOLDER, URL, attempt

folder = Path(FOLDER)
rows = folder / "rows.json"
rows.write_text(json.dumps({"said": FIRST, "answer": "none"}) + "\n")
task = {
    "task": "talk",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(rows)}},
    "test_split": "test",
    "output_type": "generate_until",
    "generation_kwargs": {"until": ["\n\n\n"]},
    "doc_to_text": "{{said}}",
    "doc_to_target": "{{answer}}",
    "metric_list": [{"metric": "exact_match"}],
}
(folder / "talk.yaml").write_text(json.dumps(task))  # JSON is YAML


def evaluated(model, arguments, *more):
    shutil.rmtree(folder / "out", ignore_errors=True)
    call = [sys.executable, "-m", "lm_eval", "--model", model, "--model_args", arguments, "--tasks", "talk"]
    call += ["--include_path", FOLDER, "--output_path", str(folder / "out"), "--log_samples", *more]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    (samples,) = (folder / "out").rglob("samples_talk_*.jsonl")
    return json.loads(samples.read_text())["resps"][0][0]


chats = f"model=eliza,base_url={URL}/chat/completions,num_concurrent=1"
texts = f"model=eliza,base_url={URL}/completions,num_concurrent=1,tokenizer_backend=None,tokenized_requests=False"
attempt("local-chat-completions", lambda: evaluated("local-chat-completions", chats, "--apply_chat_template"))
attempt("local-completions", lambda: evaluated("local-completions", texts))
