"""OpenAI's interface, driven with the unchanged ``openai`` package: against a real server, and for what goes wrong
against an application in this process."""

import base64
import io
import json
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest
from null_agent import NullAgent
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import TurnAnswer
from agents.contract import Draw, Reply, derive_seed
from agents.images import Image
from agents.stimuli import CaptionStimulus, ConversationStimulus, Stimulus, Utterance
from serving.http.chat_requests import MOST_MESSAGES
from serving.http.openai_options import MOST_CHOICES
from serving.runs.records import problems
from tests.helpers import served_here
from tests.helpers.served_here import here

SEED = 7
HELLO = [{"role": "user", "content": "I like books."}]
NAMES = ("Ann", "Ben")


@pytest.fixture
def client(served: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served}/v1", api_key="any", max_retries=0) as found:
        yield found


def png(width: int = 40, height: int = 30) -> bytes:
    """A picture in which columns and rows differ."""
    picture = PILImage.new("RGB", (width, height))
    picture.putdata([(x * 6 % 256, y * 8 % 256, (x * y) % 256) for y in range(height) for x in range(width)])
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def url(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def look(data: bytes | str, text: str | None = None) -> list[dict[str, Any]]:
    """Messages that show an image."""
    shown = data if isinstance(data, str) else url(data)
    parts: list[dict[str, Any]] = [] if text is None else [{"type": "text", "text": text}]
    return [{"role": "user", "content": [*parts, {"type": "image_url", "image_url": {"url": shown}}]}]


def own_reply(agent: str, stimulus: Stimulus, settings: Any = None, turn: int | None = None) -> Any:
    """What the agent says by itself, with the seed that a run would derive."""
    made = catalogue.get(agent).make(settings)
    options = {} if turn is None else {"speaker": "B", "turn": turn}
    made.open()
    made.load("cpu")
    draw = Draw(derive_seed(SEED, agent, stimulus.id, 0, turn, 0), options=options)
    [reply] = made.respond([made.prepare(stimulus)], [draw])
    assert isinstance(reply, Reply)
    return reply.answer


def posted(content: Any, path: str = "/v1/chat/completions", **options: Any) -> tuple[int, Any]:
    found: tuple[int, Any] = here(lambda one: one.post(path, content), **options)
    return found


# models


def test_the_agents_are_models(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == ["null", "eliza", "mmcq", "git-base-coco"]
    found = client.models.retrieve("git-base-coco")
    assert (found.id, found.object, found.owned_by) == ("git-base-coco", "model", "turinglike")
    assert found.tasks == ["image_captioning"]


# chats


def test_a_chat_is_answered_as_the_agent_itself_answers_the_conversation(client: openai.OpenAI) -> None:
    messages = list(HELLO)
    history: list[Utterance] = [Utterance(speaker="Ann", text="I like books.")]
    seen = set()
    for text in ("I read one every week.", "My mother likes them too.", "Why?"):
        answer = client.chat.completions.create(
            model="eliza", messages=messages, seed=SEED, extra_body={"stimulus": {"id": "talk", "names": list(NAMES)}}
        )
        stimulus = ConversationStimulus(id="talk", task="conversation", names=NAMES, history=list(history))
        turn = len(history)
        wanted = own_reply("eliza", stimulus, turn=turn).text
        [choice] = answer.choices
        assert choice.message.content == wanted
        assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
        assert answer.usage is not None
        assert answer.usage.total_tokens == 0  # which this agent does not count, and llm cannot do without
        [record] = answer.turinglike["records"]
        assert problems(record) == []
        assert record["seed"] == derive_seed(SEED, "eliza", "talk", 0, turn, 0)
        [message] = record["answer"]["messages"]
        assert (message["turn"], message["speaker"], message["text"]) == (turn, "Ben", wanted)
        seen.add(wanted)
        # as a program would go on: with what came back, and the next message
        messages += [choice.message.model_dump(), {"role": "user", "content": text}]
        history += [Utterance(speaker="Ben", text=wanted), Utterance(speaker="Ann", text=text)]
    assert len(seen) == 3


def test_a_chat_without_an_id_is_one_conversation_in_all_its_turns() -> None:
    async def work(found: served_here.Here) -> None:
        made = found.openai().chat.completions
        records = []
        messages = [*HELLO]
        for _ in range(2):
            answer = await made.create(model="null", messages=messages)
            assert answer.choices[0].message.content.startswith("B says ")
            records += answer.turinglike["records"]
            messages += [answer.choices[0].message, {"role": "user", "content": "Go on."}]
        assert records[0]["stimulus"] == records[1]["stimulus"]
        assert records[0]["seed"] != records[1]["seed"]
        speakers = {record["answer"]["messages"][0]["speaker"] for record in records}
        assert len(speakers) == 1  # of the two names that were drawn, the agent's
        again = await made.create(model="null", messages=HELLO)
        assert again.turinglike["records"][0]["seed"] == records[0]["seed"]
        other = await made.create(model="null", messages=[{"role": "user", "content": "I like films."}])
        assert other.turinglike["records"][0]["seed"] != records[0]["seed"]

    here(work)


def test_n_is_samples_and_a_seed_is_the_runs(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="null", messages=HELLO, n=3, seed=SEED, extra_body={"stimulus": {"id": "talk"}}
    )
    drawn = [derive_seed(SEED, "null", "talk", sample, 1, 0) for sample in range(3)]
    assert [one.message.content for one in answer.choices] == [f"B says {seed:x}." for seed in drawn]
    assert [one.index for one in answer.choices] == [0, 1, 2]
    assert [one["sample"] for one in answer.turinglike["records"]] == [0, 1, 2]


# streams


@pytest.mark.parametrize("tells", [False, True])
def test_a_stream_is_the_accepted_answer_in_pieces(client: openai.OpenAI, tells: bool) -> None:
    told: dict[str, Any] = {"model": "null", "messages": HELLO, "seed": SEED, "n": 2}
    whole = client.chat.completions.create(**told)
    more = {"stream_options": {"include_usage": True}} if tells else {}
    chunks = list(client.chat.completions.create(**told, stream=True, **more))
    if tells:
        assert chunks[-1].choices == []
        assert chunks.pop().usage.total_tokens == 0  # this agent does not tell
    for index in range(2):
        pieces = [one for one in chunks if one.choices[0].index == index]
        deltas = [one.choices[0].delta for one in pieces]
        assert deltas[0].role == "assistant"
        texts = [delta.content or "" for delta in deltas]
        assert "".join(texts) == whole.choices[index].message.content
        assert sum(map(bool, texts)) == 3  # words
        assert [one.choices[0].finish_reason for one in pieces] == [None] * (len(pieces) - 1) + ["stop"]
        [record] = pieces[-1].turinglike["records"]
        assert problems(record) == []
    assert {one.object for one in chunks} == {"chat.completion.chunk"}
    assert len({one.id for one in chunks}) == 1


# cues


def test_a_message_is_a_cue_for_an_agent_that_associates() -> None:
    async def work(found: served_here.Here) -> None:
        service = found.service
        service._declared["null"] = service.declared("null").replace(tasks=("word_association",))
        wanted = f"{derive_seed(SEED, 'null', 'tea', 0, None, 0):x}"
        more = {"seed": SEED, "extra_body": {"stimulus": {"id": "tea"}}}
        client = found.openai()
        messages = [*HELLO, {"role": "assistant", "content": "page"}, {"role": "user", "content": "tea"}]
        chat = await client.chat.completions.create(model="null", messages=messages, **more)
        assert chat.choices[0].message.content == wanted
        assert chat.turinglike["records"][0]["task"] == "word_association"

    here(work)


# images


def test_an_image_is_captioned_as_by_the_agent_itself(client: openai.OpenAI, tiny_captioner: Path) -> None:
    data = png()
    answer = client.chat.completions.create(
        model="git-base-coco",
        messages=look(data, "What is this?"),
        seed=SEED,
        extra_body={"stimulus": {"id": "tulip"}},
    )
    stimulus = CaptionStimulus(id="tulip", task="image_captioning", image=Image("tulip", data=data))
    wanted = own_reply("git-base-coco", stimulus, {"checkpoint": str(tiny_captioner)})
    assert wanted.text
    assert answer.choices[0].message.content == wanted.text
    assert answer.choices[0].finish_reason == {"end": "stop", "length": "length"}[wanted.finish]
    [record] = answer.turinglike["records"]
    assert problems(record) == []


@pytest.mark.parametrize("task", ["object_detection", "attention_prediction", "color_estimation", "image_captioning"])
def test_what_an_image_makes_an_agent_say_is_text(task: str) -> None:
    told = {"model": "null", "messages": look(png()), "stimulus": {"id": "tulip", "task": task}, "seed": SEED}
    status, found = posted(told)
    assert status == 200
    text = found["choices"][0]["message"]["content"]
    answer = found["turinglike"]["records"][0]["answer"]
    if task == "object_detection":
        assert len(answer["labels"]) == 3
        assert text.split(", ") == answer["labels"]
    elif task == "attention_prediction":
        assert json.loads(text) == answer["fixations"]
    else:
        assert text == answer["color" if task == "color_estimation" else "text"]


def test_no_address_is_fetched(client: openai.OpenAI) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        for address in (f"http://127.0.0.1:{port}/a.png", "file:///etc/passwd", "/etc/passwd", "data:text/html,x"):
            with pytest.raises(openai.UnprocessableEntityError) as caught:
                client.chat.completions.create(model="mmcq", messages=look(address))
            assert caught.value.param == "messages.0.content.0.image_url.url"
            assert address not in str(caught.value)
        with pytest.raises(TimeoutError):
            listener.accept()


# options


def test_options_and_instructions_have_no_effect_and_are_named(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(model="eliza", messages=HELLO, seed=SEED)
    told: list[Any] = [{"role": "system", "content": "Be a pirate."}, *HELLO]
    reply = client.chat.completions.with_raw_response.create(
        model="eliza",
        messages=told,
        seed=SEED,
        temperature=0.2,
        max_tokens=1,
        user="me",
        response_format={"type": "text"},
        logprobs=False,
        tool_choice="none",
        extra_body={"ignore_eos": True},
    )
    tuned = reply.parse()
    assert tuned.choices == plain.choices
    ignored = {"temperature", "max_tokens", "user", "ignore_eos", "messages.system"}
    assert set(tuned.turinglike["ignored"]) == ignored
    assert set(reply.headers["turinglike-ignored"].split(", ")) == ignored


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("tool_choice", "required", "agents call no tools"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}, "agents call no tools"),
        ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}, "agents call no tools"),
        ("function_call", {"name": "f"}, "agents call no tools"),
        ("logprobs", True, "agents have no log probabilities"),
        ("response_format", {"type": "json_object"}, "agents answer in plain text only"),
    ],
)
def test_options_that_would_change_an_answer_silently_are_refused(
    client: openai.OpenAI, name: str, value: Any, why: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="eliza", messages=HELLO, extra_body={name: value})
    assert (caught.value.code, caught.value.type) == ("unsupported_parameter", "invalid_request_error")
    assert caught.value.param == name
    assert f"{name} cannot be used here: {why}" in str(caught.value)


def test_other_routes_of_openai_are_refused_in_a_sentence(client: openai.OpenAI) -> None:
    for create in (
        lambda: client.embeddings.create(model="eliza", input="Hi"),
        lambda: client.moderations.create(input="Hi"),
    ):
        with pytest.raises(openai.NotFoundError, match="there are /v1/models, /v1/chat/completions, /v1/responses and"):
            create()  # type: ignore[no-untyped-call]


def test_an_answer_ends_before_a_stop(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="eliza", messages=HELLO, seed=SEED)
    text = whole.choices[0].message.content or ""
    stops = [text[9:11], text[5:7], "not there"]
    cut = client.chat.completions.create(model="eliza", messages=HELLO, seed=SEED, stop=stops)
    assert cut.choices[0].message.content == text[: min(text.find(stop) for stop in stops[:2])] != ""
    assert text in str(cut.turinglike["records"][0]["answer"])
    pieces = client.chat.completions.create(model="eliza", messages=HELLO, seed=SEED, stop=text[5:7], stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == text[: text.find(text[5:7])]


# what goes wrong


@pytest.mark.parametrize(
    ("settings", "options", "status", "code"),
    [
        ({"null": {"fail": "talk"}}, {}, 502, "told_to_fail"),
        ({"null": {"reject": 1.0, "attempts": 2}}, {}, 422, "rejected"),
        ({"null-one": {"delay_s": 5}}, {"deadline": 0.05}, 504, "deadline"),
        ({"null": {}}, {"queue": 1}, 429, "queue_full"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_answer_is_an_error(settings: Any, options: Any, status: int, code: str, stream: bool) -> None:
    async def work(found: served_here.Here) -> None:
        [name] = settings
        with pytest.raises(openai.APIStatusError) as caught:
            await found.openai().chat.completions.create(
                model=name, messages=HELLO, n=2, stream=stream, extra_body={"stimulus": {"id": "talk"}}
            )
        assert (caught.value.status_code, caught.value.code) == (status, code)
        assert ("retry-after" in caught.value.response.headers) == (status == 429)
        if status == 429:
            assert isinstance(caught.value, openai.RateLimitError)
        assert "told to fail" not in str(caught.value)  # an error's own text is not told
        assert found.service.waiting() == {name: 0}

    here(work, settings, **options)


def test_tokens_and_ends_are_told_where_the_agent_tells_them(monkeypatch: pytest.MonkeyPatch) -> None:
    finishes = {0: "length; prompt cut", 1: "filtered", 2: "stop"}

    def respond(agent: NullAgent, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> list[Reply]:
        found = []
        for stimulus, draw in zip(batch, draws, strict=True):
            raw = {"prompt_tokens": 10 + draw.sample, "tokens": 3} if stimulus.id == "told" else {"tokens": 3}
            found.append(Reply(TurnAnswer(text="So it is.", finish=finishes[draw.sample]), raw))
        return found

    monkeypatch.setattr(NullAgent, "respond", respond)

    async def work(found: served_here.Here) -> None:
        made = found.openai().chat.completions
        told: dict[str, Any] = {"model": "null", "messages": HELLO, "n": 3}
        answer = await made.create(**told, extra_body={"stimulus": {"id": "told"}})
        assert answer.usage is not None
        usage = (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens)
        assert usage == (12, 9, 21)
        assert [one.finish_reason for one in answer.choices] == ["length", "content_filter", "stop"]
        stream = await made.create(
            **told, stream=True, stream_options={"include_usage": True}, extra_body={"stimulus": {"id": "told"}}
        )
        chunks = [one async for one in stream]
        assert chunks[-1].usage == answer.usage
        assert {one.usage for one in chunks[:-1]} == {None}
        assert (await made.create(**told, extra_body={"stimulus": {"id": "half"}})).usage.total_tokens == 0

    here(work)


TEXT = [{"role": "user", "content": "x"}]
HOSTILE: dict[str, tuple[Any, int, str | None]] = {
    "instructions alone": (
        {"model": "null", "messages": [{"role": "system", "content": "Be a pirate."}]},
        422,
        "messages",
    ),
    "no choice": ({"model": "null", "messages": TEXT, "n": 0}, 422, "n"),
    "many choices": ({"model": "null", "messages": TEXT, "n": MOST_CHOICES + 1}, 422, "n"),
    "a seed beyond 53 bits": ({"model": "null", "messages": TEXT, "seed": 2**53}, 422, "seed"),
    "an unknown model": ({"model": "gpt-4o", "messages": TEXT}, 404, None),
    "no model": ({"messages": TEXT}, 422, "model"),
    "no messages": ({"model": "null", "messages": []}, 422, "messages"),
    "no content": ({"model": "null", "messages": [{"role": "user", "content": None}]}, 400, "messages"),
    "many messages": ({"model": "null", "messages": TEXT * (MOST_MESSAGES + 1)}, 422, "messages"),
    "an empty message": (
        {"model": "null", "messages": [*TEXT, {"role": "user", "content": " \u200b\n"}]},
        400,
        "messages",
    ),
    "two images": (
        {"model": "null", "messages": [{"role": "user", "content": look(png())[0]["content"] * 2}]},
        422,
        "messages",
    ),
    "no base64": ({"model": "null", "messages": look("data:image/png;base64,%%%")}, 422, None),
    "an image in a chat": (
        {"model": "null", "messages": look(png()), "stimulus": {"task": "conversation"}},
        422,
        "messages",
    ),
    "a text for mmcq": ({"model": "mmcq", "messages": TEXT}, 422, None),
    "no image for mmcq": (
        {"model": "mmcq", "messages": TEXT, "stimulus": {"task": "color_estimation"}},
        422,
        "messages",
    ),
    "a long cue": (
        {
            "model": "null",
            "messages": [{"role": "user", "content": "x" * 201}],
            "stimulus": {"task": "word_association"},
        },
        422,
        "stimulus.cue",
    ),
    "a field of another task": ({"model": "null", "messages": look(png()), "stimulus": {"topic": "art"}}, 422, None),
    "an id that is a path": ({"model": "null", "messages": TEXT, "stimulus": {"id": "../x"}}, 422, None),
    "a path for an image": ({"model": "null", "messages": TEXT, "stimulus": {"image": "/etc/passwd"}}, 422, None),
    "a number": (7, 422, None),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_answered_is_refused(case: str) -> None:
    content, status, param = HOSTILE[case]
    found, body = posted(content, settings={"null": {}, "eliza": {}, "mmcq": {}})
    assert found == status, body
    assert param is None or body["error"]["param"] == param
    assert "pydantic" not in json.dumps(body)
