"""Microsoft's Azure AI Vision (once Cognitive Services): colours, objects and captions, as the papers asked it.

Image analysis 3.2 of the REST interface, which alone names dominant colours, by the package
azure-cognitiveservices-vision-computervision. As in the papers' programs (kreimanlab/TuringTest, objectDetection/
Feedback_Obj/azure_test.py and colorDetection/Feedback_Color/compile_color_responses.ipynb) the objects are the first
three tags, the caption is the first one, and the colour is the first of the dominant ones, whose names are those of the
eleven words but for Grey, which is gray, and Teal, which is green.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel

from agents.answers import CaptionAnswer, ColorAnswer
from agents.contract import Address
from agents.errors import AnswerError, code_of
from agents.vision.caption_rules import flags
from agents.vision.colors import WORDS
from agents.vision.picture_service import Picture, PictureService, RetrySettings, first_labels, given

OTHER_NAMES = {"grey": "gray", "teal": "green"}
OF_PICTURE = {
    "InvalidImageFormat": "bad_image",
    "InvalidImageSize": "image_too_large",
    "NotSupportedImage": "bad_image",
    "UnsupportedMediaType": "bad_image",
}
TRIED_AGAIN = (408, 429, 500, 502, 503, 504)
LONGEST_WAIT_S = 60.0


class AzureVisionAgent(PictureService["AzureVisionAgent.Settings"]):
    """One request for each stimulus, of one kind for each task."""

    class Settings(RetrySettings):
        """Which resource is asked."""

        endpoint: Address | None = None
        """The address of one's own resource, as in https://NAME.cognitiveservices.azure.com."""
        model_version: Literal["latest", "2021-04-01", "2021-05-01"] = "latest"
        """The model that is asked for; a record holds the one that answered."""

    tasks = ("color_estimation", "object_detection", "image_captioning")
    packages = ("azure.cognitiveservices.vision.computervision",)
    service = "Azure AI Vision"
    distribution = "azure-cognitiveservices-vision-computervision"
    keys = ("VISION_KEY",)
    formats = ("JPEG", "PNG", "GIF", "BMP")

    settings: Settings

    def missing(self) -> str | None:
        if self.settings.endpoint is None:
            return f"{self.name} asks a resource of your own: --set {self.name}.endpoint=https://NAME.cognitiveservices.azure.com"
        return super().missing()

    def connect(self) -> Any:
        from azure.cognitiveservices.vision.computervision import ComputerVisionClient
        from msrest.authentication import CognitiveServicesCredentials

        client: Any = ComputerVisionClient(
            self.settings.endpoint, CognitiveServicesCredentials(os.environ["VISION_KEY"])
        )
        client.config.connection.timeout = self.settings.timeout_s
        return client

    def ask(self, client: Any, picture: Picture) -> tuple[BaseModel, dict[str, Any]]:
        if picture.task == "object_detection":
            said = self._sent(client.tag_image_in_stream, picture)
            tags = [(tag.name, tag.confidence) for tag in given(said.tags, "tags")]
            return first_labels(tags), {"tags": tags, **_about(said)}
        if picture.task == "color_estimation":
            said = self._sent(client.analyze_image_in_stream, picture, visual_features=["Color"])
            names = list(given(said.color, "colours").dominant_colors or ())
            return ColorAnswer(color=_color(names)), {"dominant_colors": names, **_about(said)}
        said = self._sent(client.describe_image_in_stream, picture)
        if not given(said.captions, "captions"):
            raise AnswerError("unparsable", f"{self.service} has no caption for the picture")
        text, confidence = said.captions[0].text, said.captions[0].confidence
        return CaptionAnswer(text=text, finish="end", flags=flags(text, ())), {"confidence": confidence, **_about(said)}

    def _sent(self, ask: Callable[..., Any], picture: Picture, **options: Any) -> Any:
        """The reply to the picture. The client streams a picture, and so cannot send it a second time by itself: it is
        given anew for each try, after a wait that grows, or that the service names."""
        from msrest.exceptions import ClientRequestError, HttpOperationError

        for attempt in range(self.settings.retries):
            try:
                return ask(io.BytesIO(picture.data), model_version=self.settings.model_version, **options)
            except HttpOperationError as error:
                if error.response.status_code not in TRIED_AGAIN:
                    raise
                named = error.response.headers.get("Retry-After", "")
            except ClientRequestError:
                named = ""
            time.sleep(min(float(named) if named.isdecimal() else 0.8 * 2**attempt, LONGEST_WAIT_S))
        return ask(io.BytesIO(picture.data), model_version=self.settings.model_version, **options)

    def failure(self, error: Exception) -> tuple[str, str] | None:
        from azure.core.exceptions import DeserializationError
        from msrest.exceptions import ClientException, HttpOperationError
        from requests.exceptions import Timeout

        if isinstance(error, HttpOperationError):
            inner = getattr(getattr(error.error, "error", None), "innererror", None)
            status = error.response.status_code
            said = inner.message if inner is not None and inner.message else error.message
            return OF_PICTURE.get(getattr(inner, "code", ""), code_of(status)), f"answered {status}: {said}"
        if isinstance(error, DeserializationError):
            return "server_bad_reply", str(error)
        if isinstance(error, ClientException):
            late = isinstance(error.inner_exception, Timeout)
            return ("server_timeout" if late else "server_unreachable"), str(error)
        return None


def _color(names: list[str]) -> str:
    """The word for the first of the dominant colours. Raises AnswerError."""
    first = names[0].lower() if names else ""
    word = OTHER_NAMES.get(first, first)
    if word not in WORDS:
        raise AnswerError("unparsable", f"the first of the dominant colours {names} is none of the eleven words")
    return word


def _about(said: Any) -> dict[str, Any]:
    return {"model": said.model_version, "request": said.request_id}
