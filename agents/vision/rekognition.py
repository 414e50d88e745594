"""Amazon Rekognition: objects, as the papers asked it.

By the package boto3. As in the papers' programs (kreimanlab/TuringTest, objectDetection/Feedback_Obj/
rekognition_test.py and compile_responses.ipynb) the objects are the first three labels of DetectLabels.
"""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, Field

from agents.errors import code_of
from agents.vision.picture_service import Picture, PictureService, RetrySettings, first_labels, given

CODES = {  # of errors whose HTTP status is 400, as most of the service's are
    "InvalidImageFormatException": "bad_image",
    "ImageTooLargeException": "image_too_large",
    "InvalidParameterException": "bad_image",  # the picture is the only parameter
    "UnrecognizedClientException": "server_auth",
    "InvalidSignatureException": "server_auth",
    "ExpiredTokenException": "server_auth",
    "AccessDeniedException": "server_auth",
    "ThrottlingException": "server_busy",
    "ProvisionedThroughputExceededException": "server_busy",
}


class RekognitionAgent(PictureService["RekognitionAgent.Settings"]):
    """One request for each stimulus."""

    class Settings(RetrySettings):
        """Which of the service's places is asked."""

        region: str = Field("us-east-1", pattern=r"^[a-z0-9-]{1,40}$")
        """The region of Amazon's whose service is asked."""

    tasks = ("object_detection",)
    packages = ("boto3",)
    service = "Amazon Rekognition"
    distribution = "boto3"
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    formats = ("JPEG", "PNG")

    settings: Settings

    def required_keys(self) -> tuple[str, ...]:
        return self.keys[:2]  # a session's token goes with keys for a time only

    def connect(self) -> Any:
        import boto3
        from botocore.config import Config

        key, secret, token = (os.environ.get(name, "").strip() or None for name in self.keys)
        config = Config(
            connect_timeout=self.settings.timeout_s,
            read_timeout=self.settings.timeout_s,
            retries={"total_max_attempts": self.settings.retries + 1, "mode": "standard"},
        )
        return boto3.client(
            "rekognition",
            region_name=self.settings.region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=config,
        )

    def ask(self, client: Any, picture: Picture) -> tuple[BaseModel, dict[str, Any]]:
        said = client.detect_labels(Image={"Bytes": picture.data})
        labels = [(label["Name"], label["Confidence"]) for label in given(said.get("Labels"), "labels")]
        about = {"labels": labels, "model": said.get("LabelModelVersion")}
        return first_labels([(name, percent / 100) for name, percent in labels]), about

    def failure(self, error: Exception) -> tuple[str, str] | None:
        from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

        if isinstance(error, ClientError):
            said, status = error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
            return CODES.get(said["Code"], code_of(status)), f"answered {status}: {said['Code']}: {said['Message']}"
        if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
            return "server_timeout", str(error)
        return ("server_unreachable", str(error)) if isinstance(error, BotoCoreError) else None
