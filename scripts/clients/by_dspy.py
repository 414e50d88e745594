"""dspy."""

import dspy
from calls import FIRST, KEY, NEXT_REPLY, REPLY, SECOND, URL, attempt

lm = dspy.LM("openai/eliza", api_base=URL, api_key=KEY)
responses = dspy.LM("openai/eliza", api_base=URL, api_key=KEY, model_type="responses")
completions = dspy.LM("text-completion-openai/eliza", api_base=URL, api_key=KEY, model_type="text")
talk = [
    {"role": "user", "content": FIRST},
    {"role": "assistant", "content": REPLY},
    {"role": "user", "content": SECOND},
]
dspy.configure(lm=lm)


def text(answer):
    return answer if isinstance(answer, str) else answer["text"]


attempt("LM", lambda: text(lm(FIRST)[0]))
attempt("LM, second turn", lambda: text(lm(messages=talk)[0]), NEXT_REPLY)
attempt("LM, responses", lambda: text(responses(FIRST)[0]))
attempt("LM, text", lambda: text(completions(FIRST)[0]), None)
attempt("Predict", lambda: dspy.Predict("question -> answer")(question=FIRST).answer, refused="client")
