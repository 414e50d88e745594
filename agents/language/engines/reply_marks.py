"""Marks by which chat models part what they think from what they answer, and end a turn.

They are facts of published models: of the chat templates of 70 models (as llama.cpp carries them), of the models' own
pages, and of the reasoning parsers of vLLM 0.31. A template's own marks are read from it besides
(:mod:`agents.language.engines.reply_form`), so that a new model needs no row here as long as its template shows them.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Mark(NamedTuple):
    """The marks of a part of a reply: it begins with ``opens`` and ends before the first of ``closes``."""

    opens: str
    """What begins the part; "" if the part has begun already."""
    closes: tuple[str, ...]
    """What ends the part, each a possible end."""


THOUGHTS = (
    Mark("<|channel|>analysis<|message|>", ("<|end|>", "<|start|>assistant")),  # gpt-oss
    Mark("<|channel|>commentary<|message|>", ("<|end|>", "<|call|>")),  # gpt-oss: what it says about its use of tools
    Mark("<|channel>thought", ("<channel|>",)),  # Gemma 4
    Mark("<|START_THINKING|>", ("<|END_THINKING|>",)),  # Cohere's Command
    Mark("<|inner_prefix|>", ("<|inner_suffix|>",)),  # Apertus
    Mark("<|think|>", ("<|end|>",)),  # Solar Open
    Mark("<|open|>think<|sep|>", ("<|close|>think<|sep|>",)),  # Kimi K3
    Mark("to=self<|message|>", ("<|eom|>",)),  # MuseGlimmer
    Mark("[THINK]", ("[/THINK]",)),  # Magistral, Ministral
    Mark("◁think▷", ("◁/think▷",)),  # Kimi-VL
    Mark("<|begin_of_thought|>", ("<|end_of_thought|>",)),  # Sky-T1, OpenThinker
    Mark("<|im_start|>think", ("<|im_start|>answer",)),  # s1
)
"""What a model thinks. After it another part may follow."""
WORDED_THOUGHTS = (
    Mark("Here are my reasoning steps:", ("[BEGIN FINAL RESPONSE]",)),  # Apriel
    Mark("Here is my thought process:", ("Here is my response:", "Here's my response:")),  # Granite 3.2
    Mark("Here's my thought process:", ("Here is my response:", "Here's my response:")),
    Mark("## Thinking\n", ("\n## Final Response\n",)),  # HuatuoGPT-o1
    Mark("think\n", ("\nanswer\n",)),  # s1, where a server takes its marks out
)
"""The same in words that any model could write. Without what closes them they are part of the answer, unless the prompt
or the template has them."""
CHANNEL = re.compile(
    r"(<\|channel\|>(?:analysis|commentary|final))[^<\n]{0,100}(?:<\|constrain\|>\s*\w*\s*)?(?=<\|message\|>)"
)
"""A form that gpt-oss names behind a channel: <|channel|>final <|constrain|>json<|message|>."""
RECIPIENT = re.compile(r"\s+to=[\w.]{1,100}(?=<\|channel\|>)")
"""To whom gpt-oss writes, before the channel."""
LABEL = re.compile(r"\s*[*_]{0,2}\w[\w .'-]{0,30}[*_]{0,2}:[*_]{0,2}\s*")
"""A speaker's label, before which models that follow a dialogue begin to think."""
TAG = re.compile(r"<(/?)((?:[\w:.-]+\|)?[\w:.-]*(?:think|thought|reason)[\w:.-]*)>", re.IGNORECASE)
"""Tags whose name says that they hold a thought: <think>, <thinking>, <thought>, <reasoning>, <seed:think>, <mm:think>,
<longcat_think>, <think:opensource>, <ifm|think_fast>. The name is in group 2; group 1 is the stroke of what closes."""
BEGUN_TAG = re.compile(r"</?[\w:.|-]*")
"""The beginning of such a tag."""

ANSWERS = (
    Mark("<|channel|>final<|message|>", ("<|return|>", "<|end|>")),  # gpt-oss
    Mark("<|content|>", ("<|end|>",)),  # Solar Open
    Mark("to=user<|message|>", ("<|eot|>", "<|eom|>")),  # MuseGlimmer
    Mark("<|open|>response<|sep|>", ("<|close|>response<|sep|>", "<|close|>message<|sep|>")),  # Kimi K3
    Mark("<|START_RESPONSE|>", ("<|END_RESPONSE|>",)),  # Cohere's Command
    Mark("<|START_TEXT|>", ("<|END_TEXT|>",)),
    Mark("[BEGIN FINAL RESPONSE]", ("[END FINAL RESPONSE]",)),  # Apriel
    Mark("<|begin_of_solution|>", ("<|end_of_solution|>",)),  # Sky-T1, OpenThinker
)
"""What wraps an answer."""
ANSWERS_AFTER_THOUGHT = tuple(
    Mark(f"<{name}>", (f"</{name}>",)) for name in ("answer", "response", "output", "Answer", "Response", "Output")
)
"""What wraps an answer behind a thought, in tags that an answer may hold for other reasons. <answer>: Hunyuan,
K2-Think, GLM-4.1V; <response>: Granite 3.3, ERNIE; <output>: Reflection; <Output>: Marco-o1."""
BOX = ("<|begin_of_box|>", "<|end_of_box|>")
"""What GLM's vision models write around the answer or a part of it."""
AGAIN = ("<|start|>assistant", "<|begin|>assistant")
"""How a model begins another part within its own turn."""

TURN_ENDS = (
    "<|im_end|>",
    "</s>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "<|end|>",
    "<|return|>",
    "<|eot|>",
    "<|eom|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|END_RESPONSE|>",
    "<|END_TEXT|>",
    "<|end_of_turn|>",
    "<｜end▁of▁sentence｜>",
    "<|end_of_sentence|>",
    "<end_of_sentence>",
    "<|assistant_end|>",
    "<|end_of_msg|>",
    "<|role_end|>",
    "<|message_sep|>",
    "[e~[",
    "<seed:eos>",
    "<|endofassistant|>",
    "<|close|>response<|sep|>",
    "<|close|>message<|sep|>",
    "[END FINAL RESPONSE]",
    "<SPECIAL_12>",
    "<sep>",
    "[|endofturn|]",
    "<|eos|>",
    "<pad>",
    "[PAD]",
    "<|pad|>",
)
"""What ends a turn. A server that leaves special tokens in its texts sends it, and all that the model wrote
behind it."""
NEXT_SPEAKERS = ("<|user|>", "<|observation|>", "<|system|>", "<|assistant|>")
"""The next speaker's mark, which ends a turn of GLM, Phi and Reka if it stands at the end of a text or of a line."""
CERTAIN_ENDS = re.compile(r"<sep> ?human:|<extra_id_1>User|<\uff5c[^<>\uff5c\s]{1,40}\uff5c>")
"""What ends a turn in a form that nobody writes in a sentence. Marks in wide strokes are DeepSeek's and Hunyuan's."""
PROMPT_HEADS = re.compile(
    r"\s*(?:<bos>|<\|begin_of_text\|>|<\uff5cbegin\u2581of\u2581sentence\uff5c>|\[gMASK\]|<sop>|<\|startoftext\|>"
    r"|<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\n*|<start_of_turn>model\n"
    r"|<\uff5cAssistant\uff5c>|<\|assistant\|>\n?|\[\|assistant\|\])+"
)
"""What begins a text or an assistant's turn, where a server leaves it before a reply."""
TURN_BEGINS = re.compile(
    r"<\|(?:im_start|start|begin|start_header_id|START_OF_TURN_TOKEN|start_of_role|user|system|user_start|open|im_user)"
    r"|<start_of_turn>|<\|turn>|<｜(?:User|begin)|<s>|\[INST\]|<seed:bos>|<beginning_of_sentence>|\]~b\]|<\|[\w▁]+\|>"
)
"""What begins the next turn behind one that has ended."""
