"""Companies' services: the real clients against a local server that replies as their documentation shows."""

import asyncio
import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer
from agents.contract import Draw
from agents.errors import AnswerError, Code
from agents.images import Image
from agents.stimuli import parse_row
from agents.vision import colors
from tests.helpers import misbehaving_server as bad
from tests.helpers.bad_images import encoded

LABELS = (("Grass", 0.9999789), ("Outdoor", 0.99), ("Building", 0.98), ("Property", 0.9))
KEY = "planted.Key_0123456789-abcdefg"
ABOUT = {"requestId": "r-1", "metadata": {"width": 8, "height": 6, "format": "Jpeg"}, "modelVersion": "2021-05-01"}


@dataclass(frozen=True)
class Service:
    """What a company's service replies to a request for labels, and where a request has its picture."""

    name: str
    labels: dict[str, Any]
    picture: Callable[[bad.Request], bytes]
    broken: tuple[int, dict[str, Any]]
    refused: dict[str, Any]


BAD_INPUT = {"code": "InvalidImageFormat", "message": "Input data is not a valid image."}
BROKEN_AZURE = {"error": {"code": "InvalidRequest", "innererror": BAD_INPUT, "message": BAD_INPUT["message"]}}
AZURE = Service(
    "azure-vision",
    {"tags": [{"name": name, "confidence": score} for name, score in LABELS], **ABOUT},
    lambda request: request.body["bytes"],
    (400, BROKEN_AZURE),
    {"error": {"code": "401", "message": f"Access denied: invalid subscription key {KEY}."}},
)
ANNOTATIONS = [{"mid": "/m/01", "description": name, "score": score, "topicality": 0.9} for name, score in LABELS]
GOOGLE = Service(
    "google-vision",
    {"responses": [{"labelAnnotations": ANNOTATIONS}]},
    lambda request: base64.b64decode(request.body["requests"][0]["image"]["content"]),
    (200, {"responses": [{"error": {"code": 3, "message": "Bad image data."}}]}),
    {"error": {"code": 401, "message": "Request had invalid authentication credentials.", "status": "UNAUTHENTICATED"}},
)
OF_AMAZON = [{"Name": name, "Confidence": 100 * score, "Instances": [], "Parents": []} for name, score in LABELS]
AMAZON = Service(
    "amazon-rekognition",
    {"Labels": OF_AMAZON, "LabelModelVersion": "3.0"},
    lambda request: base64.b64decode(request.body["Image"]["Bytes"]),
    (400, {"__type": "InvalidImageFormatException", "Message": "Request has invalid image format"}),
    {"__type": "UnrecognizedClientException", "message": f"The security token {KEY} is invalid."},
)
SERVICES = [AZURE, GOOGLE, AMAZON]
every = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a service account's key, as Google gives it out."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path_factory.mktemp("account") / "key.json"
    about = {"type": "service_account", "project_id": "p", "private_key_id": "1", "client_email": "a@p.example"}
    file.write_text(json.dumps({**about, "private_key": key.decode(), "token_uri": "http://127.0.0.1:9/token"}))
    return file


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, account: Path) -> Iterator[bad.Misbehaving]:
    for variable in ("VISION_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing but the local server is ever reached
    with bad.running() as told:
        told.url = told.url.removesuffix("/v1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_REKOGNITION", told.url)
        yield told


def picture(form: str = "PNG") -> bytes:
    return encoded(PILImage.new("RGB", (8, 6), (200, 30, 30)), form)


def ask(server: bad.Misbehaving, service: Service, task: str, *pictures: bytes, **settings: Any) -> list[Any]:
    """The replies, or errors in their place, to pictures that are all asked about at once."""
    where = {} if service is AMAZON else {"endpoint": server.url}
    agent = catalogue.get(service.name).make({"retries": 0, **where, **settings})
    agent.open()
    agent.load("cpu")

    async def all_of_them() -> list[Any]:
        prepared = []
        for at, data in enumerate(pictures or (picture(),)):
            stimulus = parse_row(json.dumps({"id": str(at), "task": task, "image": "a"}), files={"a": data})
            prepared.append(agent.prepare(stimulus))
        return await asyncio.gather(*(agent.respond_one(one, Draw(1)) for one in prepared), return_exceptions=True)

    try:
        return asyncio.run(all_of_them())
    finally:
        agent.close()


def failure(server: bad.Misbehaving, service: Service, task: str = "object_detection", **settings: Any) -> AnswerError:
    [error] = ask(server, service, task, **settings)
    assert isinstance(error, AnswerError)
    assert error.__context__ is None  # which would hold the request, and its key
    assert KEY not in str(error)
    return error


@every
def test_of_many_a_picture_that_the_service_does_not_take_fails_alone(
    server: bad.Misbehaving, service: Service
) -> None:
    odd = picture("JPEG")
    status, said = service.broken
    server.otherwise = lambda request: (
        bad.body(bad.as_json(said), status)
        if service.picture(request) == odd
        else bad.body(bad.as_json(service.labels))
    )
    *others, error = ask(server, service, "object_detection", *[picture()] * 20, odd, concurrency=4)
    assert [reply.answer.labels[0] for reply in others] == ["grass"] * 20
    assert isinstance(error, AnswerError)
    assert error.code == "bad_image"  # a fault of the stimulus, which stops no agent
    assert server.most_at_once <= 4


@every
def test_the_first_three_labels_are_the_objects(server: bad.Misbehaving, service: Service) -> None:
    """A picture goes as it is, or as a PNG where the service does not take its format."""
    server.otherwise = lambda request: bad.body(bad.as_json(service.labels))
    first, second = ask(server, service, "object_detection", picture(), picture("TIFF"), concurrency=1)
    assert first.answer == ObjectAnswer(labels=["grass", "outdoor", "building"], scores=[1.0, 0.99, 0.98])
    assert [reply.raw["image"] for reply in (first, second)] == ["original", "png"]
    assert service.picture(server.requests[0]) == picture()
    assert Image("sent", data=service.picture(server.requests[1])).header().format == "PNG"


@every
@pytest.mark.parametrize(
    ("act", "code"),
    [
        (bad.status(403), "server_auth"),
        (bad.status(503), "server_busy"),
        (bad.cut, "server_unreachable"),
        (bad.hang, "server_unreachable"),
        (bad.body(b"<html>"), "server_bad_reply"),
    ],
)
def test_what_goes_wrong_has_its_code(server: bad.Misbehaving, service: Service, act: bad.Act, code: str) -> None:
    server.otherwise = lambda request: act
    assert failure(server, service, timeout_s=0.5).code == code
    assert code in get_args(Code)


@every
def test_a_key_that_is_refused_is_not_told(server: bad.Misbehaving, service: Service) -> None:
    status = 400 if service is AMAZON else 401
    server.otherwise = lambda request: bad.body(bad.as_json(service.refused), status)
    error = failure(server, service)
    assert error.code == "server_auth"
    assert f"answered {status}: " in str(error)


@every
def test_the_client_tries_again(server: bad.Misbehaving, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.acts = [bad.status(503), bad.status(429)]
    server.otherwise = lambda request: bad.body(bad.as_json(service.labels))
    [reply] = ask(server, service, "object_detection", retries=2)
    assert reply.answer.labels[0] == "grass"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("named", "word"), [(["Grey", "White"], "gray"), (["Teal"], "green"), (["Black"], "black"), (["Turquoise"], None)]
)
def test_azures_first_dominant_colour_is_the_answer(
    server: bad.Misbehaving, named: list[str], word: str | None
) -> None:
    reply_body = {
        "color": {"dominantColorForeground": "Red", "dominantColors": named},
        **ABOUT,
    }
    server.otherwise = lambda request: bad.body(bad.as_json(reply_body))
    if word is None:
        assert failure(server, AZURE, "color_estimation").code == "unparsable"
        return
    [reply] = ask(server, AZURE, "color_estimation")
    assert reply.answer == ColorAnswer(color=word)
    assert reply.raw == {"dominant_colors": named, "model": "2021-05-01", "request": "r-1", "image": "original"}
    assert "visualFeatures=Color" in server.requests[0].path


def test_azures_first_caption_is_the_answer(server: bad.Misbehaving) -> None:
    captions = [{"text": "a dog on a couch", "confidence": 0.9}, {"text": "a dog", "confidence": 0.95}]
    server.acts = [
        bad.body(bad.as_json({"description": {"tags": ["dog"], "captions": captions}, **ABOUT})),
        bad.body(bad.as_json({"description": {"tags": ["dog"], "captions": []}, **ABOUT})),
    ]
    [reply] = ask(server, AZURE, "image_captioning")
    assert isinstance(reply.answer, CaptionAnswer)
    assert reply.answer.text == "a dog on a couch"
    assert reply.raw["confidence"] == 0.9
    assert failure(server, AZURE, "image_captioning").code == "unparsable"


def test_googles_colour_of_highest_score_has_the_nearest_of_all_css_names(server: bad.Misbehaving) -> None:
    # 224.9 is cut to 224, not rounded; lightcyan is one of the pale names that the median-cut agents leave out.
    found = [((250, 0, 0), 0.2), ((224.9, 254, 255), 0.5), ((0, 0, 250), 0.5)]
    said = [
        {"color": dict(zip(("red", "green", "blue"), rgb, strict=True)), "score": score, "pixelFraction": 0.1}
        for rgb, score in found
    ]
    whole = {"responses": [{"imagePropertiesAnnotation": {"dominantColors": {"colors": said}}}]}
    server.acts = [bad.body(bad.as_json(whole)), bad.body(bad.as_json({"responses": [{}]}))]
    [reply] = ask(server, GOOGLE, "color_estimation")
    assert "lightcyan" in colors.PALE
    assert reply.answer == ColorAnswer(color=colors.WORD["lightcyan"], css_name="lightcyan", rgb=[224, 254, 255])
    assert server.requests[0].body["requests"][0]["features"] == [{"type": 7}]  # IMAGE_PROPERTIES
    assert failure(server, GOOGLE, "color_estimation").code == "unparsable"


@every
def test_a_missing_key_or_package_is_said_before_anything_is_asked(
    service: Service, server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent: Any = catalogue.get(service.name).make({} if service is AMAZON else {"endpoint": server.url})
    assert agent.missing() is None
    assert set(agent.environment()) >= set(agent.keys)
    [package] = agent.declares.packages
    with monkeypatch.context() as gone:
        gone.setitem(sys.modules, package, None)
        gone.setattr("agents.declaration.importlib.util.find_spec", lambda name: None)
        assert agent.missing() == f"the package {package} is not installed: pip install 'turinglike[cloud]'"
    for variable in agent.keys:
        with monkeypatch.context() as unset:
            unset.setenv(variable, " ")
            assert f"wants a key, and the environment variable {variable}" in str(agent.missing())
    agent.close()


def test_googles_key_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    assert "names no file" in (catalogue.get("google-vision").make().missing() or "")
    (tmp_path / "none.json").write_text("{}")
    [error] = ask(bad.Misbehaving("http://127.0.0.1:9"), GOOGLE, "object_detection")
    assert isinstance(error, AnswerError)
    assert error.code == "server_auth"
