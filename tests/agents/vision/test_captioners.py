"""Captioners through transformers' classes: tiny models of the real architectures, loaded by the real path.

Every answer is compared with transformers' own ``generate``, called for one image as the models' documentation shows.
"""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import orjson
import pytest
import torch
from PIL import Image as PILImage
from safetensors.torch import load_file, save_file
from torchvision import transforms
from transformers import AutoImageProcessor

from agents import catalogue
from agents.answers import CaptionAnswer
from agents.catalogue.selection import checked_agents, resolve
from agents.contract import Draw, Reply
from agents.errors import AnswerError, InputError, UnavailableError
from agents.stimuli import CaptionStimulus, parse_row
from agents.vision import llava_next
from agents.vision.captioner import CaptionAgent
from agents.vision.captions import FLAGS, Flag, flags
from agents.vision.git_and_blip import Blip2Agent, BlipAgent, GitAgent
from agents.vision.llava_next import LlavaNextAgent, majority_color, majority_objects
from agents.vision.picture_replies import COLOR, OBJECTS
from tests.helpers import mixed_images, tiny_captioners
from tests.helpers.plain_captioners import Plain, best_by_length

FAMILIES: dict[str, type[CaptionAgent[Any]]] = {
    "git": GitAgent,
    "blip": BlipAgent,
    "blip2": Blip2Agent,
    "llava_next": LlavaNextAgent,
}
GREEDY = {"beams": 1, "max_tokens": 12}
BEAM = {"beams": 4, "length_penalty": 0.6, "min_tokens": 5, "max_tokens": 14, "no_repeat_ngram": 3}
DRAWN = {"decoding": "sample", "temperature": 0.9, "top_k": 30, "top_p": 0.95, "max_tokens": 12}
QUESTION = "a picture of"
# prompt, what n tokens are divided by, the penalty, and what is added to the end's logit: texts of all lengths end
LENGTHS: dict[str, tuple[str, Callable[[int], float], float, float]] = {
    "git": ("a", lambda n: ((5 + n) / 6) ** 0.6, 0.6, 3),
    "blip": (QUESTION, float, 1.0, 0.5),
}


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint of one family. Not to be changed by a test."""
    return tiny_captioners.MAKERS[family](tmp_path_factory.mktemp(family) / "checkpoint")


@pytest.fixture(scope="module")
def plain(family: str, folder: Path) -> Plain:
    return Plain(family, folder)


@pytest.fixture(scope="module")
def stimuli(images: list[Path]) -> list[CaptionStimulus]:
    return [mixed_images.stimulus(path) for path in images]


def _loaded(family: str, folder: Path, **settings: Any) -> CaptionAgent[Any]:
    cls: Any = FAMILIES[family]
    agent = cls(cls.Settings(checkpoint=str(folder), **settings), family)
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def _texts(replies: Any) -> list[tuple[Any, ...]]:
    """What can be compared: the text with special tokens, its length and how it ended."""
    texts = []
    for reply in replies:
        assert isinstance(reply, Reply), reply
        assert isinstance(reply.answer, CaptionAnswer)
        raw = reply.raw["text"] if isinstance(reply.raw, dict) else reply.raw
        texts.append((raw, reply.answer.tokens, reply.answer.finish))
    return texts


def _pictures(stimuli: list[CaptionStimulus]) -> list[PILImage.Image]:
    return [PILImage.fromarray(stimulus.image.decode()) for stimulus in stimuli]


@pytest.mark.parametrize(
    ("chosen", "prompt"),
    [(GREEDY, QUESTION), ({**BEAM, "early_stopping": True}, "")],
    ids=["greedy", "beam"],
)
def test_a_batch_says_what_transformers_generate_says_of_each(
    family: str, folder: Path, plain: Plain, stimuli: list[CaptionStimulus], chosen: dict[str, Any], prompt: str
) -> None:
    as_today = {"length_norm": "transformers"} if family in LENGTHS else {}
    agent = _loaded(family, folder, prompt=prompt, **chosen, **as_today)
    together = _texts(agent.respond([agent.prepare(stimulus) for stimulus in stimuli], [Draw(seed=1)] * 8))
    named = {
        "beams": "num_beams",
        "max_tokens": "max_new_tokens",
        "min_tokens": "min_new_tokens",
        "no_repeat_ngram": "no_repeat_ngram_size",
    }
    options = {"do_sample": False, **{named.get(name, name): value for name, value in chosen.items()}}
    expected = [plain.said(plain.tokens([one], prompt, **options)[0]) for one in _pictures(stimuli)]
    assert together == expected
    assert len({text for text, _, _ in together}) > 4  # the model does look at the image


@pytest.mark.parametrize("name", LENGTHS)
def test_beams_are_divided_by_their_length_as_by_their_authors(
    name: str, tmp_path: Path, stimuli: list[CaptionStimulus]
) -> None:
    """GIT: BeamHypotheses of microsoft/GenerativeImage2Text, layers/decoder.py. BLIP: transformers 4.15, the prompt's
    tokens counted. In what transformers does today some captions are others."""
    prompt, divisor, penalty, ends_sooner = LENGTHS[name]
    makers: Any = tiny_captioners.MAKERS
    folder = makers[name](tmp_path / name, 1)
    weights = load_file(folder / "model.safetensors")
    output = "output.bias" if name == "git" else "text_decoder.cls.predictions.bias"
    weights[output][Plain(name, folder).end] += ends_sooner
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    plain = Plain(name, folder)
    settings = {"prompt": prompt, "beams": 4, "length_penalty": penalty, "max_tokens": 24}

    def captions(rule: str) -> list[tuple[Any, ...]]:
        agent = _loaded(name, folder, length_norm=rule, **settings)
        return _texts(agent.respond([agent.prepare(stimulus) for stimulus in stimuli], [Draw(seed=1)] * len(stimuli)))

    ours = captions("original")
    todays = captions("transformers")
    same = 0
    changed = 0
    for picture, original, today in zip(_pictures(stimuli), ours, todays, strict=True):
        start, step = plain.stepper(picture, prompt)
        best = best_by_length(step, start, 4, 25 + len(start), plain.end, divisor, any_may_end=name == "git")
        if best is not None:
            assert original[0] == plain.said([*best, plain.end])[0]
            same += 1
            changed += original != today
    assert same > 3
    assert changed > 0


def test_draws_depend_on_their_seed_alone_and_an_image_is_encoded_once_for_all_its_samples(
    family: str, folder: Path, stimuli: list[CaptionStimulus]
) -> None:
    agent: Any = _loaded(family, folder, **DRAWN)
    prepared = [agent.prepare(stimulus) for stimulus in stimuli[:4]]
    draws = [Draw(seed=1000 + index, sample=index % 3) for index in range(12)]
    items = [prepared[index // 3] for index in range(12)]
    with mock.patch.object(agent, "_encode", wraps=agent._encode) as encode:
        together = _texts(agent.respond(items, draws))
    assert sum(len(call.args[0]) for call in encode.call_args_list) == 4
    fives = [_texts(agent.respond(items[at : at + 5], draws[at : at + 5])) for at in range(0, 12, 5)]
    assert [text for part in fives for text in part] == together
    assert len({text for text, _, _ in together}) > 9


def test_samples_in_beam_search_are_the_beams_by_rank(
    family: str, folder: Path, plain: Plain, stimuli: list[CaptionStimulus]
) -> None:
    agent = _loaded(family, folder, beams=4, max_tokens=10)
    prepared = agent.prepare(stimuli[0])
    replies = agent.respond([prepared] * 4, [Draw(seed=9, sample=rank) for rank in (2, 0, 3, 1)])
    raw = replies[0].raw if isinstance(replies[0], Reply) else None
    asked = agent.settings.prompt.replace("{words}", str(raw["max_words"]) if isinstance(raw, dict) else "")
    found = plain.tokens(
        _pictures(stimuli[:1]), asked, num_beams=4, num_return_sequences=4, max_new_tokens=10, do_sample=False
    )
    expected = [plain.said(one) for one in found]
    assert _texts(replies) == [expected[rank] for rank in (2, 0, 3, 1)]
    scores = [reply.answer.score for reply in replies]
    assert 0 > scores[1] >= scores[3] >= scores[0] >= scores[2]
    [reply] = agent.respond([prepared], [Draw(seed=9, sample=4)])
    assert isinstance(reply, AnswerError)
    assert reply.code == "too_few_beams"


def test_logits_that_are_no_numbers_fail_their_own_item_only(
    family: str, folder: Path, stimuli: list[CaptionStimulus]
) -> None:
    agent = _loaded(family, folder, **BEAM)
    prepared = [agent.prepare(stimulus) for stimulus in stimuli[:4]]
    draws = [Draw(seed=index) for index in range(4)]
    whole = _texts(agent.respond(prepared, draws))
    spoiled = [*prepared[:2], {**prepared[2], "pixel_values": prepared[2]["pixel_values"] * torch.nan}, prepared[3]]
    replies = agent.respond(spoiled, draws)
    assert isinstance(replies[2], AnswerError)
    assert replies[2].code == "bad_logits"
    assert _texts([replies[index] for index in (0, 1, 3)]) == [whole[index] for index in (0, 1, 3)]


def test_more_text_than_the_model_has_room_for_is_refused_at_load(tmp_path: Path) -> None:
    folder = tiny_captioners.blip(tmp_path / "blip")
    for chosen in ({"max_tokens": 4096}, {"prompt": "a cat " * 10, "max_tokens": 12, "count_prompt": True}):
        with pytest.raises(UnavailableError, match=r"a prompt of \d+ tokens do not go together: the model has"):
            _loaded("blip", folder, **chosen)


# what a single family does


def test_blip_counts_the_prompt_and_cuts_it_off(tmp_path: Path, stimuli: list[CaptionStimulus]) -> None:
    """Limits that count the prompt are those of the authors' program: max_length of ``generate``."""
    folder = tiny_captioners.blip(tmp_path / "blip")
    plain = Plain("blip", folder)
    limits = {"min_tokens": 8, "max_tokens": 12, "count_prompt": True, "length_norm": "transformers"}
    agent = _loaded("blip", folder, prompt=QUESTION, beams=3, **limits)
    expected = [
        plain.said(plain.tokens([picture], QUESTION, num_beams=3, min_length=8, max_length=12)[0])
        for picture in _pictures(stimuli)
    ]
    assert _texts(agent.respond([agent.prepare(stimulus) for stimulus in stimuli], [Draw(seed=1)] * 8)) == expected


@pytest.mark.parametrize("size", [(640, 427), (51, 50)])
def test_git_cuts_out_the_middle_where_its_authors_do(tmp_path: Path, size: tuple[int, int]) -> None:
    """Their program is torchvision's Resize and CenterCrop; half a pixel goes to the even number."""
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    picture = PILImage.fromarray(pixels)
    picture.save(tmp_path / "picture.png")
    folder = tiny_captioners.git(tmp_path / "git")
    prepared = _loaded("git", folder).prepare(mixed_images.stimulus(tmp_path / "picture.png"))["pixel_values"]
    about = AutoImageProcessor.from_pretrained(folder, backend="pil")
    wanted = transforms.Compose(
        [
            transforms.Resize(48, transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(48),
            transforms.ToTensor(),
            transforms.Normalize(about.image_mean, about.image_std),
        ]
    )(picture)
    torch.testing.assert_close(prepared, wanted, atol=1e-5, rtol=0)


def test_lengths_are_those_of_the_people_in_a_file_of_records(tmp_path: Path) -> None:
    path = tmp_path / "humans.jsonl"
    captions = [("human", "a dog on a bench"), ("human", "two cats"), ("machine", "one two three four"), ("human", "")]
    rows = [{"task": "image_captioning", "kind": kind, "answer": {"text": text}} for kind, text in captions]
    rows += [{"task": "word_association", "kind": "human", "answer": {"word": "bone"}}]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    name = "llava-v1.6-mistral-7b"
    chosen = resolve([name], [f"{name}.lengths={path}"], None)
    [made] = checked_agents(chosen.entries, chosen.settings).values()
    assert made.settings.lengths == (5, 2)
    path.write_text("[]\n")
    with pytest.raises(InputError) as caught:
        checked_agents(chosen.entries, chosen.settings)
    assert f"{path} is no file of records" in str(caught.value.problems)


def test_llavas_prompt_has_peoples_instructions_and_a_drawn_number_of_words(
    tmp_path: Path, stimuli: list[CaptionStimulus]
) -> None:
    """The same number at every attempt; the same seed under a prompt that names the number says the same."""
    folder = tiny_captioners.llava_next(tmp_path / "llava")
    agent = _loaded("llava_next", folder, lengths=[4, 12, 15], least_words=10, **DRAWN)
    draws = [Draw(seed=7 * at, sample=at // 2, attempt=at % 2) for at in range(18)]
    drawn = agent.respond([agent.prepare(stimuli[0])] * 18, draws)
    limits = [reply.raw["max_words"] for reply in drawn if isinstance(reply, Reply)]
    assert limits[::2] == limits[1::2]
    assert set(limits) == {10, 12, 15}
    named = agent.settings.prompt.replace("{words}", str(limits[0]))
    assert f"The description should contain at most {limits[0]} words, at least 6 words." in named
    other = _loaded("llava_next", folder, prompt=named, **DRAWN)
    assert _texts(other.respond([other.prepare(stimuli[0])], draws[:1])) == _texts(drawn)[:1]


@pytest.mark.parametrize(
    ("texts", "color"),
    [
        (["Blue", "blue.", "Gray", "gray", "gray"], "gray"),
        (["Red", "blue", "Blue.", "red", "A red car"], "red"),  # of equals the first
        (["White"] * 5, "white"),
        (["light blue", "light blue", "blue", "red", "light blue"], None),
        ([""] * 5, None),
    ],
)
def test_llavas_color_is_what_most_runs_say(texts: list[str], color: str | None) -> None:
    if color is None:
        with pytest.raises(AnswerError, match="no colour") as raised:
            majority_color(texts)
        assert raised.value.code == "unparsable"
    else:
        assert majority_color(texts).color == color


def test_llavas_objects_are_what_most_runs_name() -> None:
    said = ["Dog, Frisbee, Grass", "Grass, dog, sky.", "frisbee, Dog", "Dog, fire hydrant", ""]
    assert majority_objects(said).labels == ["dog", "frisbee", "grass"]
    with pytest.raises(AnswerError, match="no objects"):
        majority_objects([", 1", "…"])


@pytest.mark.parametrize(("task", "question"), [("color_estimation", COLOR), ("object_detection", OBJECTS)])
def test_llava_answers_about_colors_and_objects_in_five_runs(
    task: str, question: str, tmp_path: Path, stimuli: list[CaptionStimulus]
) -> None:
    """MiscellaneousCode/LLaVa_Color_Estimation.py and LLaVa_Object_Detection.py; each run says what a captioner with
    that prompt says, whatever else is in the batch."""
    folder = tiny_captioners.llava_next(tmp_path / "llava")
    agent = _loaded("llava_next", folder, **DRAWN)
    row = {"id": "s", "task": task, "image": str(stimuli[1].image.path)}
    batch = [agent.prepare(stimuli[2]), agent.prepare(parse_row(orjson.dumps(row)))]
    caption, reply = agent.respond(batch, [Draw(seed=1), Draw(seed=2)])
    assert isinstance(caption, Reply)
    assert isinstance(caption.answer, CaptionAnswer)

    single = _loaded("llava_next", folder, prompt=question, **DRAWN)
    seeds = [2, *(llava_next.run_seed(2, run) for run in range(1, 5))]
    runs: Any = single.respond([single.prepare(stimuli[1])] * 5, [Draw(seed=seed) for seed in seeds])
    texts = [run.answer.text for run in runs]
    assert len(set(texts)) > 1
    if task == "object_detection":
        assert isinstance(reply, Reply)
        assert reply.raw == {"runs": texts}
        assert reply.answer == majority_objects(texts)
    else:
        assert isinstance(reply, AnswerError)
        assert repr(" / ".join(texts)) in str(reply)


@pytest.mark.parametrize(("attempt", "rejected"), [(0, True), (8, True), (9, False)])
def test_llavas_tenth_caption_is_kept(
    tmp_path: Path, attempt: int, rejected: bool, stimuli: list[CaptionStimulus]
) -> None:
    """MiscellaneousCode/LLaVa_Image_Captioning.py: ten tries, and what the last one said."""
    settings = {
        key: value for key, value in catalogue.get("llava-v1.6-mistral-7b").settings.items() if key != "checkpoint"
    }
    agent = LlavaNextAgent(LlavaNextAgent.Settings(checkpoint=str(tmp_path), **settings), "llava")
    assert agent.declaration().attempts == 10
    answer = CaptionAnswer(text="Two dogs run.", tokens=4, finish="end", flags=["too_few_words"])
    reply = Reply(answer, {"text": "Two dogs run.", "attempt": attempt, "max_words": 12})
    findings = [look(stimuli[0], reply) for look in agent.declaration().filters]
    assert [finding.rejected for finding in findings if finding is not None] == [rejected]


def test_an_image_that_is_a_mere_line_is_refused_where_its_short_side_would_be_enlarged(tmp_path: Path) -> None:
    PILImage.new("RGB", (1, 500)).save(tmp_path / "line.png")
    agent = _loaded("git", tiny_captioners.git(tmp_path / "git"))
    with pytest.raises(AnswerError, match="1 x 500") as raised:
        agent.prepare(mixed_images.stimulus(tmp_path / "line.png"))
    assert raised.value.code == "image_too_narrow"


# what is noticed in captions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a man in a red coat walks his dog along the beach", []),
        ("A mother's two-year-old boy, laughing; it is 5 o'clock - time to go.", []),
        ("", ["empty", "too_few_words"]),
        ("a dog on a couch", ["too_few_words"]),
        ("a a a man holding a plate of food", ["repeated_words"]),
        ("the cat and the dog and the bird and the fish near the tree", ["repeated_words"]),
        ("the cat and the dog and the bird and a fish near the tree", []),
        ("There is a cat on the old sofa", ["there_is"]),
        ("over there is a cat on the sofa", []),
        ("an image of a cat on the sofa", ["mentions_image"]),
        ("a photographer with a camera on the beach", []),
        ("a man holding a sign that says $5 off", ["special_characters"]),
        ("a person that is holding [ unused0 ] in the hand", ["special_tokens", "special_characters"]),
        ("a cat on a big red mat <|endoftext|>", ["special_tokens", "special_characters"]),
        ("लाल कोट में एक आदमी कुत्ते को घुमा रहा है।", []),
        ("كَلْبٌ صَغِيرٌ يَلْعَبُ فِي حَدِيقَةٍ كَبِيرَةٍ، وَحِيدًا", []),
        (unicodedata.normalize("NFD", "un café très noir près de la forêt"), []),
        ("एक कुत्ता", ["too_few_words"]),
        ("एक एक एक आदमी सड़क पर चलता है", ["repeated_words"]),
        ("一只狗在草地上跑。", []),  # eight characters without a space
        ("a dog on the beach … so happy", ["special_characters"]),
        ("a dog on the beach is happy 😀", ["special_characters"]),
    ],
)
def test_flags(text: str, expected: list[Flag]) -> None:
    assert flags(text) == expected
    assert flags(text, FLAGS) == list(FLAGS)
