"""What OFA reads and writes: images as numbers, texts as tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agents.errors import UnavailableError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BOS, PAD, EOS, UNKNOWN, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
CODES, BINS = 8192, 1000  # tokens of image codes and of coordinates, after those of the vocabulary
OWN_TOKENS = CODES + BINS


class OFAImageProcessor:
    """Images as the reference reads them (data/mm_data/caption_dataset.py): squeezed to a square of ``size`` pixels by
    Pillow's bicubic filter, mean and standard deviation 0.5."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """[H, W, 3] of 0 to 255 -> [3, size, size] of -1 to 1."""
        from PIL import Image

        square = Image.fromarray(pixels).resize((self.size, self.size), Image.Resampling.BICUBIC)
        half = np.float32(0.5)
        scaled = (np.asarray(square, dtype=np.float32) / np.float32(255) - half) / half
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The byte-level BPE of vocab.json and merges.txt in ``folder``, with OFA's own tokens after it.

    Every size of OFA has the same dictionary: 50265 tokens of BART's, <code_0> to <code_8191>, <bin_0> to <bin_999>.
    A text is encoded between <s> and </s>. Raises UnavailableError if the files are not there or are damaged.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    lacking = [name for name in ("vocab.json", "merges.txt") if not (folder / name).is_file()]
    if lacking:
        raise UnavailableError(f"{folder} lacks {' and '.join(lacking)}, the dictionary of OFA's texts")
    try:
        vocabulary, merges = models.BPE.read_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        named = {token: vocabulary[token] for token in (BOS, PAD, EOS, UNKNOWN)}
        # As entries of the vocabulary and not as added tokens, thousands of which take seconds: no text is encoded to
        # them, and they are decoded as they are written.
        for token in (MASK, *(f"<code_{code}>" for code in range(CODES)), *(f"<bin_{place}>" for place in range(BINS))):
            vocabulary.setdefault(token, len(vocabulary))
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token=UNKNOWN))
    except KeyError as error:
        raise UnavailableError(f"{folder / 'vocab.json'} has no token {error}") from None
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise UnavailableError(f"{folder}: vocab.json or merges.txt is damaged: {error}") from None
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in (*named, MASK)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A {EOS}", special_tokens=[(BOS, named[BOS]), (EOS, named[EOS])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )
