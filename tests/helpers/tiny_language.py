"""Tiny language models of the real architectures with random weights, saved as their published checkpoints are."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

TEXTS = [
    "Hi! How are you today? I am fine, thank you. What do you think about music and movies?",
    "Alice: I like long books about science. John: I do not, they are boring! Alice: Why do you say that?",
    "Cue: hot; Guess: cold Cue: dog; Guess: cat Cue: see; Guess: look. Name a word that you associate with it.",
    "The technology of sports and fashion is changing, and politics too. Tell me more, please.",
]
LLAMA_TEMPLATE = (
    "{{- bos_token }}{%- for message in messages %}"
    "{{- '<|start|>' + message['role'] + '<|end|>\\n' + message['content'] | trim + '<|eot|>' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|start|>assistant<|end|>\\n' }}{%- endif %}"
)
# As Mistral's and Gemma's: no system role, and speakers take turns.
STRICT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}"
    "{% endif %}{{ '<|start|>' + message['role'] + '<|end|>' + message['content'] + '<|eot|>' }}"
    "{% endfor %}<|start|>assistant<|end|>"
)


def gpt2(folder: Path, seed: int = 0, positions: int = 256) -> Path:
    """Like gpt2 and microsoft/DialoGPT-large: learned positions, one special token for everything, no padding token."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    tokenizer = byte_tokenizer(folder, "<|endoftext|>", bos="<|endoftext|>", eos="<|endoftext|>")
    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=positions,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=end,
        eos_token_id=end,
    )
    return _save(GPT2LMHeadModel(config), folder, end)


def llama(folder: Path, seed: int = 0, template: str | None = LLAMA_TEMPLATE, positions: int = 512) -> Path:
    """Like meta-llama/Llama-3.1-8B-Instruct: rotary positions, grouped heads, a chat template, several end tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    special = ("<|begin|>", "<|start|>", "<|end|>", "<|eot|>", "<|text_end|>")
    tokenizer = byte_tokenizer(folder, *special, bos="<|begin|>", eos="<|eot|>", template=template, begins=True)
    ends = tokenizer.convert_tokens_to_ids(["<|text_end|>", "<|eot|>"])
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=ends,
    )
    model = LlamaForCausalLM(config)
    # What a published checkpoint may say, and what is a setting here.
    model.generation_config.update(do_sample=True, temperature=0.6, top_p=0.9, repetition_penalty=1.05)
    return _save(model, folder, ends[1])


def scripted(folder: Path, template: str, *says: str) -> Path:
    """A Llama that answers every chat with the tokens ``says``, all different and no token twice; ``<think>`` is no
    special token, as Qwen's, and ``[THINK]`` is, as Mistral's."""
    from transformers import LlamaConfig, LlamaForCausalLM

    special = ("<|start|>", "<|eot|>", "[THINK]", "[/THINK]")
    byte_tokenizer(folder, *special, bos="<|start|>", eos="<|eot|>", template=template)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in ("<think>", "</think>")])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
        known = model.get_input_embeddings().weight.normal_()
        head = model.get_output_embeddings().weight.zero_()
        prompt = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
        chain = [prompt["input_ids"][-1], *tokenizer.convert_tokens_to_ids(says), tokenizer.eos_token_id]
        for token, following in pairwise(chain):
            head[following] = known[token]
    model.save_pretrained(folder)
    return folder


def blenderbot(folder: Path, seed: int = 0, positions: int = 128) -> Path:
    """Like facebook/blenderbot-400M-distill: an encoder, as many positions, its own choices of generation."""
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    torch.manual_seed(seed)
    tokenizer = byte_tokenizer(
        folder, "<pad>", "<s>", "</s>", "<unk>", bos="<s>", eos="</s>", pad="<pad>", add_prefix_space=True
    )
    config = BlenderbotConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=positions,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    model = BlenderbotForConditionalGeneration(config)
    model.generation_config.update(
        num_beams=10,
        min_length=20,
        max_length=60,
        length_penalty=0.65,
        no_repeat_ngram_size=3,
        encoder_no_repeat_ngram_size=3,
        forced_eos_token_id=2,
    )
    return _save(model, folder, 2)


def byte_tokenizer(
    folder: Path,
    *special: str,
    bos: str,
    eos: str,
    pad: str | None = None,
    template: str | None = None,
    add_prefix_space: bool = False,
    begins: bool = False,
    texts: Sequence[str] = TEXTS,
) -> Any:
    """A byte-level tokenizer trained on ``texts``, the same every time; with ``begins``, ``bos`` begins a text."""
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(special) + 256 + 120,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in special],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    if begins:
        start = [(bos, inner.token_to_id(bos))]
        inner.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=start)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=bos, eos_token=eos, pad_token=pad)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return tokenizer


def _save(model: Any, folder: Path, end: int) -> Path:
    """Save a model whose weights are large enough for its texts to differ and, with the token ``end``, to end at
    times."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                looked_up = any(part in name for part in ("emb", "wte", "wpe", "shared"))
                weight.normal_(0, (0.5 if looked_up else 1.5) / weight.shape[1] ** 0.5)
        model.get_output_embeddings().weight[end] *= 1.8
    model.eval().save_pretrained(folder)
    (folder / "RANDOM_WEIGHTS").touch()
    return folder


MAKERS: dict[str, Callable[[Path], Path]] = {"gpt2": gpt2, "llama": llama, "blenderbot": blenderbot}
