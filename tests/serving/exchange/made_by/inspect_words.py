"""Makes logs of Inspect with its own mock of a model: python inspect_words.py FOLDER, with inspect-ai 0.3.285."""

import shutil
import sys
import tempfile
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

WORDS = [("table", "chair"), ("deep, sea", 'fish, "blue"'), ("Müll", "")]


def output(word: str) -> ModelOutput:
    message = ChatMessageAssistant(content=word, source="generate")
    choices = [ChatCompletionChoice(message=message)]
    # Without a usage Inspect asks the network for a tokenizer.
    return ModelOutput(model="mockllm/model", choices=choices, usage=ModelUsage(input_tokens=1, output_tokens=1))


samples = [
    Sample(id=number, input=f"Which word comes to mind? {cue}", target=word, metadata={"cue": cue})
    for number, (cue, word) in enumerate(WORDS, start=1)
]
logs = tempfile.mkdtemp()
model = get_model("mockllm/model", custom_outputs=[output(word) for _, word in WORDS])
task = Task(dataset=samples, scorer=match(), name="words")
[log] = eval(task, model=model, log_dir=logs, max_samples=1, display="none", max_connections=1)
print(log.status)
folder = Path(sys.argv[1])
whole = read_eval_log(log.location)
whole.eval.revision = None
whole.location = ""
write_eval_log(whole, str(folder / "inspect-0.3.285.json"), format="json")
write_eval_log(whole, str(folder / "inspect-0.3.285.eval"), format="eval")
shutil.rmtree(logs)
