"""What a text may not say, against transformers' own rules."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import EncoderNoRepeatNGramLogitsProcessor

from agents.language.engines.stopping import NoPromptNGrams


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("beams", [1, 3])
def test_no_sequence_of_the_prompt_is_said_again(size: int, beams: int) -> None:
    """Of two tokens, so that much is repeated; prompts and texts shorter than the sequences too. transformers is asked
    about each row alone: to it, padding would be a token."""
    random = torch.Generator().manual_seed(size)
    hidden = 0
    for longest in (1, 3, 9, 40):
        prompts: Any = torch.randint(0, 2, (4, longest), generator=random)
        lengths = torch.randint(1, longest + 1, (4,), generator=random).tolist()
        for length in (1, 2, 3, 6):
            said: Any = torch.randint(0, 2, (4, beams, length), generator=random)
            scores: Any = torch.randn(4, beams, 5, generator=random)
            expected = [
                EncoderNoRepeatNGramLogitsProcessor(size, prompts[row, : lengths[row]])(said[row], scores[row])
                for row in range(4)
            ]
            shown = torch.arange(longest) < torch.tensor(lengths)[:, None]
            rule = NoPromptNGrams(size, prompts.masked_fill(~shown, -1))
            found = rule(said.flatten(0, 1), scores.flatten(0, 1))
            assert torch.equal(found, torch.cat(expected))
            hidden += int(found.isinf().sum())
    assert hidden > 10
