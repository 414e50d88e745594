#!/usr/bin/env bash
set -euo pipefail
# Package: transformers 5.17.0, with the chat templates of 70 models in the source package of llama-cpp-python 0.3.36.
# Found: an earlier message of the assistant, "The mark </think> closes a thought.", loses its beginning in the prompt by
#   16 of the 66 templates that render it. They take what stands before </think> for a thought, whoever opened it, and
#   leave it out: the prompt has "closes a thought." alone. Nothing is raised.
# Expected: the words of the message. It has no <think>, and it was sent as content, not as reasoning_content.
# Seen: the same with Qwen3 and 3.5, QwQ, DeepSeek R1 and V3.1, GLM 4.6 and 4.7, MiniMax-M2, Nemotron Nano v2, LFM2.5,
#   MiniCPM5, Reka Edge, StepFun 3.5 and RWKV. By the other 50 the words are kept.
# Source: transformers documents reasoning_content as the place of thoughts in a history.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'transformers==5.17.0' 'jinja2==3.1.6'
venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36
cat > render.py <<'PY'
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

CHAT = [
    {"role": "user", "content": "What closes a thought?"},
    {"role": "assistant", "content": "The mark </think> closes a thought."},
    {"role": "user", "content": "And?"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "", "unk_token": ""}
lost, kept, refused = [], [], []
[archive] = Path().glob("llama_cpp_python-*.tar.gz")
with tarfile.open(archive) as package:
    for member in package:
        if "/models/templates/" not in member.name or not member.name.endswith(".jinja"):
            continue
        source = package.extractfile(member).read().decode()
        name = Path(member.name).stem
        try:
            prompt = render_jinja_template([CHAT], chat_template=source, add_generation_prompt=True, **TOKENS)[0][0]
        except Exception:  # templates that want tools
            refused.append(name)
            continue
        (kept if "The mark" in prompt else lost).append(name)
        if "The mark" not in prompt:
            assert "closes a thought." in prompt, name
print("transformers", version("transformers"))
print(f"the beginning is lost by {len(lost)}, kept by {len(kept)}, refused by {len(refused)}")
print("lost:", ", ".join(lost))
if (len(lost), len(kept), len(refused)) != (16, 50, 4):
    sys.exit("changed: expected 16, 50 and 4")
PY
venv/bin/python render.py
