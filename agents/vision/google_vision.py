"""Google's Cloud Vision: colours and objects, as the papers asked it.

By the package google-cloud-vision. As in the papers' programs (kreimanlab/TuringTest, colorDetection/Feedback_Color/
run_google_cloud.py and compile_color_responses.ipynb) the objects are the first three labels. The colour is the word
for the CSS3 name, any of them, that is nearest to the dominant colour of highest score, whose fractions are cut off;
the map from names to words is ours (:mod:`agents.vision.colors`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents.answers import ColorAnswer
from agents.contract import NO_ANSWER, Address
from agents.errors import AnswerError, code_of
from agents.stimuli import Task
from agents.vision import colors
from agents.vision.picture_service import Picture, PictureService, ServiceSettings, first_labels, given

CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
INVALID = 3  # INVALID_ARGUMENT of google.rpc.Code: "Bad image data."


class GoogleVisionAgent(PictureService["GoogleVisionAgent.Settings"]):
    """One request for each stimulus, for labels or for the picture's properties."""

    class Settings(ServiceSettings):
        """Which of the service's places is asked."""

        endpoint: Address = "https://vision.googleapis.com"
        """The service's address; https://eu-vision.googleapis.com keeps pictures in the European Union."""
        patience_s: float = Field(300.0, gt=0, le=86_400, json_schema_extra=NO_ANSWER)
        """The longest that a request may take with all its tries and waits, in seconds; keep it below --timeout."""

    tasks: tuple[Task, ...] = ("color_estimation", "object_detection")  # type: ignore[misc]
    packages = ("google.cloud.vision",)
    service = "Google Cloud Vision"
    distribution = "google-cloud-vision"
    keys = (CREDENTIALS,)
    formats = ("JPEG", "PNG", "GIF", "BMP", "WEBP")

    settings: Settings

    def missing(self) -> str | None:
        missing = super().missing()
        if missing is None and not Path(os.environ[CREDENTIALS]).is_file():
            return f"the environment variable {CREDENTIALS} names no file: give the path of a service account's key"
        return missing

    def connect(self) -> Any:
        from google.cloud import vision

        # By HTTP, as gRPC does not go through every proxy.
        return vision.ImageAnnotatorClient(client_options={"api_endpoint": self.settings.endpoint}, transport="rest")

    def ask(self, client: Any, picture: Picture) -> tuple[BaseModel, dict[str, Any]]:
        from google.cloud.vision import Feature

        if picture.task == "object_detection":
            said = self._annotated(client, picture, Feature.Type.LABEL_DETECTION)
            labels = [(label.description, label.score) for label in said.label_annotations]
            return first_labels(labels), {"labels": [(name, round(score, 6)) for name, score in labels]}
        said = self._annotated(client, picture, Feature.Type.IMAGE_PROPERTIES)
        found = [
            ((int(one.color.red), int(one.color.green), int(one.color.blue)), one.score)
            for one in said.image_properties_annotation.dominant_colors.colors
        ]
        if not found:
            raise AnswerError("unparsable", f"{self.service} names no dominant colour of the picture")
        rgb, _ = max(found, key=lambda one: one[1])
        name = colors.nearest_rgb(rgb)
        answer = ColorAnswer(color=colors.word_of(name), css_name=name, rgb=list(rgb))
        return answer, {"dominant_colors": [(list(rgb), round(score, 6)) for rgb, score in found]}

    def _annotated(self, client: Any, picture: Picture, feature: Any) -> Any:
        """What the service says of the picture. Raises errors of the client, and AnswerError."""
        from google.api_core.retry import Retry

        replies = client.batch_annotate_images(
            requests=[{"image": {"content": picture.data}, "features": [{"type_": feature}]}],
            retry=Retry(timeout=self.settings.patience_s),
            timeout=self.settings.timeout_s,
        ).responses
        said = given(replies[0] if replies else None, "annotation")
        if said.error.code:
            code = "bad_image" if said.error.code == INVALID else "server_refused"
            raise AnswerError(code, f"{self.service}: {said.error.message}")
        return said

    def failure(self, error: Exception) -> tuple[str, str] | None:
        from google.api_core.exceptions import GoogleAPICallError, RetryError
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.protobuf.json_format import ParseError
        from requests.exceptions import RequestException, Timeout

        if isinstance(error, RetryError):
            error = error.cause or error
        if isinstance(error, GoogleAPICallError):
            status = int(error.code or 500)
            return code_of(status), f"answered {status}: {error.message}"
        if isinstance(error, ParseError):
            return "server_bad_reply", str(error)
        if isinstance(error, RetryError | Timeout):
            return "server_timeout", str(error)
        if isinstance(error, RequestException | TransportError):
            return "server_unreachable", str(error)
        return ("server_auth", str(error)) if isinstance(error, GoogleAuthError) else None
