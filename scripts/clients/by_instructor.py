"""instructor: eliza writes no JSON, so each of its modes must be refused in a sentence."""

import instructor
import openai
from calls import FIRST, KEY, URL, attempt
from pydantic import BaseModel


class Mood(BaseModel):
    mood: str


def made(mode):
    client = instructor.from_openai(openai.OpenAI(base_url=URL, api_key=KEY), mode=mode)
    messages = [{"role": "user", "content": FIRST}]
    return str(client.chat.completions.create(model="eliza", response_model=Mood, messages=messages))


attempt("TOOLS (its default)", lambda: made(instructor.Mode.TOOLS), refused=400)
attempt("JSON", lambda: made(instructor.Mode.JSON), refused=400)
attempt("JSON_SCHEMA", lambda: made(instructor.Mode.JSON_SCHEMA), refused=400)
attempt("MD_JSON", lambda: made(instructor.Mode.MD_JSON), refused="client")
