"""Texts of servers: what the model thinks is taken off in every form that models write, and nothing else is."""

import pytest

from agents.answers import TurnAnswer
from agents.contract import Reply
from agents.language.engines.reasoning import parted, reasoning_mark
from agents.stimuli import WordStimulus

R = "Hm, she greets me. I could say hi."
A = "Hi there, how are you?"
# How models write a thought and an answer, each in its own marks.
FORMS = {
    "qwen3": f"<think>\n{R}\n</think>\n\n{A}",
    "deepseek r1": f"\n<think>{R}</think>{A}",
    "two thoughts": f"<think>\n\n</think>\n\n<think>{R}</think>{A}",
    "an empty thought that the prompt began": f"</think>\n\n{A}",
    "minimax m3": f"<mm:think>{R}</mm:think>{A}",
    "solar open": f"<|think|>{R}<|end|><|begin|>assistant<|content|>{A}<|end|>",
    "muse glimmer": f" to=self<|message|>{R}<|eom|><|start|>assistant to=user<|message|>{A}<|eot|>",
    "muse glimmer without a thought": f" to=user<|message|>{A}",
    "kimi k3": f"<|open|>think<|sep|>{R}<|close|>think<|sep|><|open|>response<|sep|>{A}<|close|>response<|sep|>"
    "<|close|>message<|sep|>",
    "kimi k3 without a thought": f"{A}<|close|>response<|sep|><|close|>message<|sep|>",
    "apertus": f"<|inner_prefix|>{R}<|inner_suffix|>{A}",
    "granite 3.3": f"<think>{R}</think>\n<response>{A}</response>",
    "granite 3.2": f"Here is my thought process: {R} Here is my response: {A}",
    "hunyuan, k2-think": f"<think>\n{R}\n</think>\n<answer>\n{A}\n</answer>",
    "glm 4.1v thinking": f"<think>{R}</think><answer><|begin_of_box|>{A}<|end_of_box|></answer>",
    "glm 4.5v": f"<think>{R}</think>\n<|begin_of_box|>{A}<|end_of_box|>",
    "ernie 4.5 thinking": f"<think>\n{R}\n</think>\n\n<response>\n{A}\n</response>\n",
    "exaone deep": f"<thought>\n{R}\n</thought>\n\n{A}",
    "reka flash 3": f"<reasoning>{R}</reasoning>{A}",
    "kimi-vl thinking": f"◁think▷{R}◁/think▷{A}",
    "longcat": f"<longcat_think>{R}</longcat_think>{A}",
    "k2 horizon": f"<ifm|think_fast>{R}</ifm|think_fast>{A}",
    "hy3": f"<think:opensource>{R}</think:opensource>{A}",
    "apriel 1.5": f"Here are my reasoning steps:\n{R}\n[BEGIN FINAL RESPONSE]\n{A}\n[END FINAL RESPONSE]",
    "gpt-oss": f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}<|return|>",
    "gpt-oss with a preamble": f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>commentary"
    f"<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>{A}",
    "gpt-oss without a thought": f"<|channel|>final<|message|>{A}",
    "gpt-oss that names a form": f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final "
    f"<|constrain|>json<|message|>{A}",
    "sky-t1, openthinker": f"<|begin_of_thought|>\n\n{R}\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\n{A}\n\n"
    "<|end_of_solution|>",
    "s1": f"<|im_start|>think\n{R}\n<|im_start|>answer\n{A}",
    "s1, marks taken out": f"think\n{R}\nanswer\n{A}",
    "huatuogpt-o1": f"## Thinking\n\n{R}\n\n## Final Response\n\n{A}",
    "marco-o1": f"<Thought>{R}</Thought>\n<Output>\n{A}\n</Output>",
    "a label before the thought": f"A: <think>{R}</think>{A}",
    "the next speaker's mark": f"<think>{R}</think>{A}<|user|>",
    "the next speaker's words": f"{A}<|user|>\nFine.",
    "a tool's mark": f"{A}<|observation|>",
    "reka flash": f"{A} <sep> human: Fine.",
    "exaone 4": f"{A}[|endofturn|]",
    "hunyuan": f"{A}<|eos|>",
    "hunyuan without a thought": f"<answer>\n{A}\n</answer>",
    "hunyuan dense": f"{A}<｜hy_place▁holder▁no▁2｜>",
    "deepseek, and another turn": f"{A}<｜User｜>Fine.",
    "nemo, and another turn": f"{A}\n<extra_id_1>User\nFine.",
    "a padded batch": f"{A}<pad><pad>",
    "gemma, all of it": f"<bos>{A}<eos>",
    "llama 2, all of it": f"<s>{A}</s>",
    "glm's beginning": f"[gMASK]<sop>{A}",
    "a thought behind a text's beginning": f"<|begin_of_text|><think>{R}</think>{A}",
    "a thought behind a turn's beginning": f"<|im_start|>assistant\n<think>{R}</think>{A}<|im_end|>",
    "nemotron nano v2": f"{A}\n<SPECIAL_12>",
    "gemma 4": f"<|channel>thought\n{R}<channel|>{A}",
    "seed-oss": f"<seed:think>{R}</seed:think>{A}<seed:eos>",
    "magistral, ministral": f"[THINK]{R}[/THINK]{A}</s>",
    "cohere2moe": f"<|START_THINKING|>{R}<|END_THINKING|><|START_TEXT|>{A}<|END_TEXT|><|END_OF_TURN_TOKEN|>",
    "command r7b": f"<|START_THINKING|>{R}<|END_THINKING|><|START_RESPONSE|>{A}<|END_RESPONSE|>",
    "some other": f"<Thinking>{R}</Thinking>\n{A}",
    # A server that takes special tokens out leaves their words.
    "gpt-oss, marks taken out": f"analysis{R}assistantfinal{A}",
    "gpt-oss with a preamble, marks taken out": f"analysis{R}assistantcommentaryI look.assistantfinal{A}",
    "gpt-oss that names a form, marks taken out": f"analysis{R}assistantfinal json{A}",
    "gpt-oss without a thought, marks taken out": f"final{A}",
    "kimi k3, marks taken out": f"{R}thinkresponse{A}responsemessage",
    "kimi k3 without a thought, marks taken out": f"{A}responsemessage",
    "muse glimmer, marks taken out": f" to=self{R}assistant to=user{A}",
    # One that leaves the mark of a turn's end.
    "chatml": f"{A}<|im_end|>",
    "chatml, and another turn": f"{A}<|im_end|>\n<|im_start|>user\nFine. And you?<|im_end|>",
    "llama 2": f"{A}</s>",
    "llama 3": f"{A}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nFine.",
    "gemma 3": f"{A}<end_of_turn>\n<start_of_turn>user\nFine.",
    "deepseek": f"{A}<｜end▁of▁sentence｜>",
}
ORDINARY = [
    "analysis",
    "Analysis of the data says no.",
    "analysis: I like it",
    "final",
    "My final answer is moon.",
    "finally",
    "begin",
    "Let us begin with the final response.",
    "thought",
    "thought leader",
    "A thought: why not?",
    "reasoning",
    "The assistant is not here.",
    "I asked an assistant. Final score: 2 to 1.",
    "A response message came.",
    "I think </think> closes a thought.",
    "think",
    "think twice",
    "think\nagain",
    "## Thinking\nA heading.",
    "A: <b>no</b>",
    "The mark <|user|> begins a turn.",
    "I use <sep> between words.",
    "Its channels begin with <|channel|> there.",
    "The mark `</think>` closes a thought.",
    'He wrote "</think>" and left.',
    "I would write <think>…</think> around it.",
    "Yes <think> no",
    "Code:\n```xml\n<think>\nHm\n</think>\n```\nThat is all.",
    "In XML I write <answer>42</answer>.",
    "<answer>42</answer> is how I write it.",
    "<s>tea</s> coffee",
    "<bold>no</bold>",
    "Use `<answer>` and `</answer>`.",
    "```\n<response>ok</response>\n```",
    "Here are my reasoning steps: first tea, then rain.",
    "[BEGIN] and [END] are marks of mine.",
    "In ChatML <|im_end|> ends a turn.",
    "A turn ends with `<|im_end|>`",
    "HTML strikes out <s>words</s>",
    "  two spaces before, and after  ",
    "to=user is an option of that program",
    "I <3 tea, and 2 < 3 > 1.",
    "",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_leaves_exactly_its_answer(form: str) -> None:
    parts = parted(FORMS[form])
    assert (parts.answer, parts.fault) == (A, None)
    if R in FORMS[form]:
        assert R in (parts.thought or "")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_replies_stay_letter_for_letter(text: str) -> None:
    parts = parted(text)
    assert (parts.thought, parts.answer, parts.fault) == (None, text, None)


@pytest.mark.parametrize(
    "text",
    [
        f"{R}</think>{A}",
        f"{R}\n</think>\n\n{A}",
        f"{R} </think>\n\n{A}",
        f"Sure! <think>{R}</think>{A}",
        f"Sure.\n<think>\n{R}\n</think>\n{A}",
        f"{R}[/THINK]{A}",
        f"{R}<|END_THINKING|>{A}",
        f"{R}\n[BEGIN FINAL RESPONSE]\n{A}",
        f"{R}<|channel|>final<|message|>{A}",
        f"<|channel|>odd {R}",
        f"<|message|>{A}",
        f"thought\n{R}{A}",  # Gemma 4 and Solar, marks taken out: nothing stands between thought and answer
        f"{R}assistant{A}",
    ],
)
def test_what_cannot_be_parted_is_no_answer(text: str) -> None:
    assert parted(text).fault is not None


def test_a_call_of_a_tool_is_no_answer() -> None:
    call = "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>"
    assert parted(f"<|channel|>analysis<|message|>{R}<|end|>{call}").answer == ""


@pytest.mark.parametrize("text", [f"<think>{R}", f"[THINK]{R}", f"Here are my reasoning steps:\n{R}", f"analysis{R}"])
def test_a_reply_that_ends_within_its_thought_has_no_answer(text: str) -> None:
    assert parted(text, is_whole=False).answer is None


@pytest.mark.parametrize(
    "text",
    [
        f"{R}</think>{A}",
        f"{R}\n</think>\n\n{A}",
        f"{R}\n[BEGIN FINAL RESPONSE]\n{A}",
        f"<think>{R}</think>{A}",
        f"{R}</think><answer>{A}</answer>",
        f"{R}</seed:think>{A}<seed:eos>",
        f"{R}<|END_THINKING|><|START_TEXT|>{A}",
    ],
)
def test_a_thought_that_the_prompt_opened(text: str) -> None:
    parts = parted(text, "opened")
    assert (parts.thought, parts.answer) == (R, A)
    assert parted(R, "opened").answer is None


def test_of_a_model_that_does_not_think_nothing_is_taken_off() -> None:
    text = f"<think>{R}</think>{A}"
    assert parted(text, "none").answer == text


def test_what_wraps_an_answer_is_taken_off_where_the_thought_came_apart() -> None:
    assert parted(f"<answer>\n{A}\n</answer>", has_thought=True).answer == A


@pytest.mark.parametrize(
    ("text", "found"), [("The tag </think> ends it", "</think>"), ("[THINK] is a mark", "[THINK]"), (A, None)]
)
def test_a_mention_is_noted(text: str, found: str | None) -> None:
    stimulus = WordStimulus(id="sun", task="word_association", cue="sun")
    verdict = reasoning_mark(stimulus, Reply(TurnAnswer(text=text), {"text": text}))
    assert (verdict.found if verdict else None) == found
    assert verdict is None or not verdict.rejected
