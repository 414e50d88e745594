"""What a model thinks before it answers, apart from its answer."""

from agents.errors import AnswerError
from agents.language.engines.text_request import GeneratedText

# What stands before and after it at Qwen's and DeepSeek's models, Mistral's, Cohere's, Gemma 4, Seed-OSS and gpt-oss;
# the last are of an answer of gpt-oss without it.
MARKS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<seed:think>", "</seed:think>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>final<|message|>", ""),
)


def begun(prompt: str) -> str:
    """The mark by which a prompt's end begins the reasoning, or ""."""
    return next((begin for begin, _ in MARKS if prompt.rstrip().endswith(begin)), "")


def parted(text: str) -> tuple[str | None, str | None]:
    """(reasoning or None, answer or None within the reasoning)."""
    start = text.lstrip()
    for begin, end in MARKS:
        if start.startswith(begin):
            reasoning = start.removeprefix(begin)
            index = reasoning.find(end)
            return (reasoning, None) if index < 0 else (reasoning[:index], reasoning[index + len(end) :])
    for _, end in MARKS:
        if end and end in text:  # the prompt, which a server does not show, had the first mark
            reasoning, _, answer = text.partition(end)
            return reasoning, answer
    return None, text


def may_begin(text: str) -> bool:
    """Whether ``text`` could be the beginning of a mark."""
    return any(begin.startswith(text.lstrip()) for begin, _ in MARKS)


def unfinished(text: GeneratedText) -> AnswerError:
    """For a reply without an answer."""
    why = "the model ended its reply within its reasoning"
    if text.finish == "length":
        why = "the reply's tokens did not suffice for its reasoning: raise reasoning_tokens"
    return AnswerError("unfinished_reasoning", why, text.record())
