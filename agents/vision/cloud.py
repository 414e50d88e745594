"""Amazon Rekognition, Google Cloud Vision and Azure AI Vision, as the papers asked them (kreimanlab/TuringTest,
objectDetection/Feedback_Obj and colorDetection/Feedback_Color)."""

import asyncio
import io
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field

from agents.answers import COLORS, CaptionAnswer, ColorAnswer, ObjectAnswer
from agents.contract import GIB, NO_ANSWER, Address, Agent, Declaration, Draw, Reply, Settings
from agents.errors import AnswerError, code_of, quoted
from agents.stimuli import Stimulus, Task
from agents.vision import colors
from agents.vision.captions import flags

INVALID_ARGUMENT = 3
"""Google's code of errors that are the picture's, such as "Bad image data.", as opposed to the service's."""
LABELS = 3
"""How many of a service's labels the papers take."""
PASSING = ("server_busy", "server_unreachable")
"""Errors that another try may mend."""


class ServiceSettings(Settings):
    """How patient the service's client is."""

    concurrency: int = Field(8, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests a worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the service may be silent in a try, in seconds."""
    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again, after waits of 0.8 s, 1.6 s and so on to a minute."""


PictureFile = tuple[Task, bytes, str]
"""A picture on its way: the task, the file's bytes, and whether they are the original's or a PNG made of it."""
S = TypeVar("S", bound=ServiceSettings)


class PictureService(Agent[S]):
    """Base of the services. A subclass connects, asks, and says what the errors of its client are.

    The clients block, so that each request has a thread of its own, and each thread a client.
    """

    declares = Declaration(
        extra="cloud",
        memory=1 * GIB,  # photographs that are decoded to be looked at
        parallel=False,
    )
    service: ClassVar[str]
    """The service's name in messages."""
    distribution: ClassVar[str]
    """The client's package."""
    keys: ClassVar[tuple[str, ...]]
    """Variables with keys, all of which are needed."""
    optional_keys: ClassVar[tuple[str, ...]] = ()
    """Variables with keys of which some accounts have none."""
    formats: ClassVar[tuple[str, ...]]
    """The kinds of files that are sent as they are; any other picture is sent as a PNG."""
    codes: ClassVar[dict[str, str]] = {}
    """This project's codes for the service's names of errors."""

    def __init__(self, settings: S, name: str) -> None:
        super().__init__(settings, name)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix=name)
        self._thread = threading.local()
        self._connecting = threading.Lock()

    def declaration(self) -> Declaration:
        """With as many calls at a time as the settings allow."""
        return super().declaration().replace(max_in_flight=self.settings.concurrency)

    def environment(self) -> tuple[str, ...]:
        """The variables with keys."""
        return self.keys + self.optional_keys

    def missing(self) -> str | None:
        """What the base class says; also the first key that is not set."""
        for key in self.keys:
            if not os.environ.get(key, "").strip():
                return (
                    f"{self.service} wants a key, and the environment variable {key} holds none: set it where the "
                    "agent runs (on a cluster, before Ray is started there)"
                )
        return super().missing()

    def prepare(self, stimulus: Stimulus) -> PictureFile:
        """The file as it will be sent. Raises ImageError."""
        data, form, _ = stimulus.image.sendable(self.formats)  # type: ignore[union-attr]
        return stimulus.task, data, form

    async def respond_one(self, prepared: PictureFile, draw: Draw) -> Reply:
        """The service's answer, in a thread. Raises AnswerError."""
        task, data, form = prepared
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._patiently, task, data)
        return Reply(reply.answer, {**reply.raw, "image": form})

    def provenance(self) -> dict[str, Any]:
        """The client's version."""
        return {self.distribution: version(self.distribution)}

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _patiently(self, task: Task, data: bytes, attempt: int = 0) -> Reply:
        try:
            return self._once(task, data)
        except AnswerError as error:
            if error.code not in PASSING or attempt == self.settings.retries:
                raise
        time.sleep(min(0.8 * 2**attempt, 60.0))
        return self._patiently(task, data, attempt + 1)

    def _once(self, task: Task, data: bytes) -> Reply:
        """The service's reply to a call. Errors are raised outside of the handler: a client's error may hold keys."""
        try:
            if not hasattr(self._thread, "client"):
                with self._connecting:  # clients are not made by two threads at once
                    self._thread.client = self.connect()
            return self.ask(self._thread.client, task, data)
        except AnswerError:
            raise
        except Exception as error:  # the clients' errors have no base in common; unknown ones go on
            if (failure := self.failure(error)) is None:
                raise
        code, message = failure
        secrets = [os.environ.get(key, "").strip() for key in self.environment()]
        raise AnswerError(code, f"{self.service}: {quoted(message, secrets)}")

    @abstractmethod
    def connect(self) -> Any:
        """A client that does not retry by itself."""

    @abstractmethod
    def ask(self, client: Any, task: Task, data: bytes) -> Reply:
        """The answer to ``task`` of the picture ``data``. Raises the client's errors, and AnswerError where a reply has
        no answer."""

    @abstractmethod
    def failure(self, error: Exception) -> tuple[str, str] | None:
        """(code, message) of an error that is the client's; None for any other."""


def _codes(**names: str) -> dict[str, str]:
    return {name: code for code, row in names.items() for name in row.split()}


class RekognitionAgent(PictureService["RekognitionAgent.Settings"]):
    """Labels by Amazon Rekognition, as in the papers' rekognition_test.py."""

    class Settings(ServiceSettings):
        """Which service is asked."""

        region: str = Field("us-east-1", pattern=r"^[a-z0-9-]{1,40}$")
        """The region in which Amazon's service is asked."""

    declares = Declaration(
        tasks=("object_detection",),
        packages=("boto3",),
    )
    service = "Amazon Rekognition"
    distribution = "boto3"
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    optional_keys = ("AWS_SESSION_TOKEN",)  # of keys for a time only
    formats = ("JPEG", "PNG")
    codes = _codes(  # of errors whose HTTP status is 400, as most of the service's are; the picture is the parameter
        bad_image="InvalidImageFormatException InvalidParameterException",
        image_too_large="ImageTooLargeException",
        server_auth="UnrecognizedClientException InvalidSignatureException ExpiredTokenException AccessDeniedException",
        server_busy="ThrottlingException ProvisionedThroughputExceededException",
    )

    def connect(self) -> Any:
        """A client with the keys of the environment."""
        import boto3
        from botocore.config import Config

        values = [os.environ.get(name, "").strip() or None for name in self.environment()]
        key, secret, token = values
        wait = self.settings.timeout_s
        config = Config(connect_timeout=wait, read_timeout=wait, retries={"total_max_attempts": 1})
        return boto3.Session(key, secret, token, self.settings.region).client("rekognition", config=config)

    def ask(self, client: Any, task: Task, data: bytes) -> Reply:
        """The first three labels, in small letters."""
        reply = client.detect_labels(Image={"Bytes": data})
        labels = [(label["Name"], label["Confidence"]) for label in _present(reply.get("Labels"), "labels")]
        answer = _first_labels([(name, percent / 100) for name, percent in labels])
        return Reply(answer, {"labels": labels, "model": reply.get("LabelModelVersion")})

    def failure(self, error: Exception) -> tuple[str, str] | None:
        """By the service's name for the error, else by its HTTP status."""
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, ClientError):
            details = error.response["Error"]
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            code = self.codes.get(details["Code"], code_of(status))
            return code, f"answered {status}: {details['Code']}: {details['Message']}"
        return ("server_unreachable", str(error)) if isinstance(error, BotoCoreError) else None


class GoogleVisionAgent(PictureService["GoogleVisionAgent.Settings"]):
    """Labels and colours by Google Cloud Vision, as in run_google_cloud.py and compile_color_responses.ipynb: of a
    colour's numbers the fractions are cut off."""

    class Settings(ServiceSettings):
        """Which service is asked."""

        endpoint: Address = "https://vision.googleapis.com"
        """The service's address; https://eu-vision.googleapis.com keeps pictures in the European Union."""

    declares = Declaration(
        tasks=("color_estimation", "object_detection"),
        packages=("google.cloud.vision",),
    )
    service = "Google Cloud Vision"
    distribution = "google-cloud-vision"
    keys = ("GOOGLE_APPLICATION_CREDENTIALS",)
    formats = ("JPEG", "PNG", "GIF", "BMP", "WEBP")

    def missing(self) -> str | None:
        """What the base class says; also that the variable names no file."""
        missing = super().missing()
        [key] = self.keys
        if missing is None and not Path(os.environ[key]).is_file():
            return f"the environment variable {key} names no file: give the path of a service account's key"
        return missing

    def connect(self) -> Any:
        """A client by HTTP, as gRPC does not go through every proxy."""
        from google.cloud import vision

        # By HTTP, as gRPC does not go through every proxy.
        return vision.ImageAnnotatorClient(client_options={"api_endpoint": self.settings.endpoint}, transport="rest")

    def ask(self, client: Any, task: Task, data: bytes) -> Reply:
        """The first three labels, or the word for the dominant colour of the highest score."""
        from google.cloud.vision import Feature

        is_color = task == "color_estimation"
        feature = Feature.Type.IMAGE_PROPERTIES if is_color else Feature.Type.LABEL_DETECTION
        request = {"image": {"content": data}, "features": [{"type_": feature}]}
        reply = client.batch_annotate_images(requests=[request], retry=None, timeout=self.settings.timeout_s)
        annotation = _present(next(iter(reply.responses), None), "annotation")
        if annotation.error.code:
            code = "bad_image" if annotation.error.code == INVALID_ARGUMENT else "server_refused"
            raise AnswerError(code, f"{self.service}: {annotation.error.message}")
        if not is_color:
            labels = [(label.description, label.score) for label in annotation.label_annotations]
            return Reply(_first_labels(labels), {"labels": [(name, round(score, 6)) for name, score in labels]})
        dominant = [
            ((int(entry.color.red), int(entry.color.green), int(entry.color.blue)), entry.score)
            for entry in annotation.image_properties_annotation.dominant_colors.colors
        ]
        if not dominant:
            raise AnswerError("unparsable", f"{self.service} names no dominant colour of the picture")
        rgb, _ = max(dominant, key=lambda entry: entry[1])
        name = colors.nearest_rgb(rgb)
        answer = ColorAnswer(color=colors.word_of(name), css_name=name, rgb=list(rgb))
        return Reply(answer, {"dominant_colors": [(list(rgb), round(score, 6)) for rgb, score in dominant]})

    def failure(self, error: Exception) -> tuple[str, str] | None:
        """By the HTTP status, or by the kind of error of the client's libraries."""
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.protobuf.json_format import ParseError
        from requests.exceptions import RequestException

        if isinstance(error, GoogleAPICallError):
            status = int(error.code or 500)
            return code_of(status), f"answered {status}: {error.message}"
        if isinstance(error, ParseError):
            return "server_bad_reply", str(error)
        if isinstance(error, RequestException | TransportError):
            return "server_unreachable", str(error)
        return ("server_auth", str(error)) if isinstance(error, GoogleAuthError) else None


class AzureVisionAgent(PictureService["AzureVisionAgent.Settings"]):
    """Colours, labels and captions by Azure's image analysis 3.2, as in azure_test.py and
    compile_color_responses.ipynb."""

    class Settings(ServiceSettings):
        """Which resource is asked for which model."""

        endpoint: Address | None = None
        """The address of your resource, as in https://NAME.cognitiveservices.azure.com."""
        model_version: Literal["latest", "2021-04-01", "2021-05-01"] = "latest"
        """The model that is asked for; a record holds the model that answered."""

    declares = Declaration(
        tasks=("color_estimation", "object_detection", "image_captioning"),
        packages=("azure.cognitiveservices.vision.computervision",),
    )
    service = "Azure AI Vision"
    distribution = "azure-cognitiveservices-vision-computervision"
    keys = ("VISION_KEY",)
    formats = ("JPEG", "PNG", "GIF", "BMP")
    codes = _codes(  # of errors that are the picture's
        bad_image="InvalidImageFormat NotSupportedImage UnsupportedMediaType", image_too_large="InvalidImageSize"
    )

    def missing(self) -> str | None:
        """What the base class says; also that no resource is named."""
        if self.settings.endpoint is None:
            example = "https://NAME.cognitiveservices.azure.com"
            return (
                f"{self.name} asks a resource of yours: name it by the setting {self.name}.endpoint={example} (--set)"
            )
        return super().missing()

    def connect(self) -> Any:
        """A client of the resource."""
        from azure.cognitiveservices.vision.computervision import ComputerVisionClient
        from msrest.authentication import CognitiveServicesCredentials

        credentials = CognitiveServicesCredentials(os.environ["VISION_KEY"])
        client: Any = ComputerVisionClient(self.settings.endpoint, credentials)
        client.config.connection.timeout = self.settings.timeout_s
        client.config.retry_policy.retries = 0
        return client

    def ask(self, client: Any, task: Task, data: bytes) -> Reply:
        """The first three tags, the first dominant colour, or the first caption."""
        answer: BaseModel
        image = io.BytesIO(data)
        options = {"model_version": self.settings.model_version}
        raw: dict[str, Any]
        if task == "object_detection":
            reply = client.tag_image_in_stream(image, **options)
            tags = [(tag.name, tag.confidence) for tag in _present(reply.tags, "tags")]
            answer = _first_labels(tags)
            raw = {"tags": tags}
        elif task == "color_estimation":
            reply = client.analyze_image_in_stream(image, visual_features=["Color"], **options)
            names = list(_present(reply.color, "colours").dominant_colors or ())
            answer = _first_color(names)
            raw = {"dominant_colors": names}
        else:
            reply = client.describe_image_in_stream(image, **options)
            if not _present(reply.captions, "captions"):
                raise AnswerError("unparsable", f"{self.service} has no caption for the picture")
            text = reply.captions[0].text
            answer = CaptionAnswer(text=text, finish="end", flags=flags(text))
            raw = {"confidence": reply.captions[0].confidence}
        return Reply(answer, {**raw, "model": reply.model_version, "request": reply.request_id})

    def failure(self, error: Exception) -> tuple[str, str] | None:
        """By the service's name for the error, else by its HTTP status."""
        from azure.core.exceptions import DeserializationError
        from msrest.exceptions import ClientException, HttpOperationError

        if isinstance(error, HttpOperationError):
            inner = getattr(getattr(error.error, "error", None), "innererror", None)
            status = error.response.status_code
            message = getattr(inner, "message", None) or error.message
            return self.codes.get(getattr(inner, "code", ""), code_of(status)), f"answered {status}: {message}"
        if isinstance(error, DeserializationError):
            return "server_bad_reply", str(error)
        return ("server_unreachable", str(error)) if isinstance(error, ClientException) else None


def _present(part: Any, what: str) -> Any:
    if part is None:
        raise AnswerError("server_bad_reply", f"the reply holds no {what}")
    return part


def _first_labels(labels: Sequence[tuple[str, float]]) -> ObjectAnswer:
    kept = labels[:LABELS]
    return ObjectAnswer(labels=[label.lower() for label, _ in kept], scores=[round(score, 4) for _, score in kept])


def _first_color(names: list[str]) -> ColorAnswer:
    first = "".join(names[:1]).lower()
    word = {"grey": "gray", "teal": "green"}.get(first, first)
    if word not in COLORS:
        raise AnswerError("unparsable", f"the first of the dominant colours {names} is none of the eleven words")
    return ColorAnswer(color=word)
