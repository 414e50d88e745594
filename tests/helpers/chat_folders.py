"""Folders of chat models without weights: a configuration, and a tokenizer with a template and its special tokens."""

from collections.abc import Sequence
from pathlib import Path

from transformers import LlamaConfig

from agents.language.engines.text_request import GeneratedText, Sampling
from agents.language.engines.transformers import TransformersEngine
from tests.helpers import tiny_language


def opened(folder: Path, template: str, special: Sequence[str], end: str) -> TransformersEngine:
    """An engine that writes prompts and reads replies; its tokenizer names ``end`` alone as the end of a text."""
    tokens = list(dict.fromkeys(["<|text|>", end, *special]))
    tokenizer = tiny_language.byte_tokenizer(folder, *tokens, bos="<|text|>", eos=end, template=template)
    LlamaConfig(vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id).save_pretrained(folder)
    engine = TransformersEngine(folder)
    engine.open(chat=True)
    return engine


def reply(engine: TransformersEngine, prompt: str, text: str, *, is_full: bool = False) -> GeneratedText:
    """What the engine makes of ``text`` as a model's tokens after ``prompt``. Raises AnswerError."""
    encode = engine._tokenizer.encode
    begun = engine._begun(encode(prompt, add_special_tokens=False))
    tokens = encode(text, add_special_tokens=False)
    return engine._generated(tokens, begun, Sampling(max_tokens=500), 1, is_full=is_full)
