"""A stimulus of every task."""

import io
import json
from typing import Any

from PIL import Image

from agents.stimuli import parse_row

SIZE = (64, 48)  # of the picture
ROWS: dict[str, dict[str, Any]] = {
    "color_estimation": {"image": "a.png"},
    "object_detection": {"image": "a.png", "present": ["cat"], "absent": ["elephant", "ship"]},
    "image_captioning": {"image": "a.png"},
    "attention_prediction": {"image": "a.png"},
    "word_association": {"cue": "bread"},
    "conversation": {
        "names": ["Ann", "Bob"],
        "personas": ["dry and brief", "loud and proud"],
        "topic": "coffee",
        "history": [{"speaker": "Ann", "text": "I like jazz"}, {"speaker": "Bob", "text": "why?"}],
    },
}


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", SIZE, "teal").save(buffer, "PNG")
    return buffer.getvalue()


def stimulus(task: str, **changes: Any) -> Any:
    return parse_row(json.dumps({"id": "s1", "task": task, **ROWS[task], **changes}), files={"a.png": picture()})
