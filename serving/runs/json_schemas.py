"""The JSON Schemas of records and of stimuli, generated from the models."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from agents.answers import BY_TASK, LATER, TurnAnswer
from agents.stimuli import ADAPTER
from serving.runs.records import Record


def record_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a record."""
    models: list[type[BaseModel]] = [Record, *BY_TASK.values(), TurnAnswer]
    _, definitions = models_json_schema([(model, "serialization") for model in models])
    parts: dict[str, Any] = definitions["$defs"]
    for part in parts.values():
        # No key is ever left out, with or without a default, apart from those that old records lack.
        part["required"] = [name for name in part["properties"] if name not in LATER]
    record: dict[str, Any] = parts.pop("Record")
    reference = {task: {"$ref": f"#/$defs/{model.__name__}"} for task, model in BY_TASK.items()}
    record["properties"]["answer"] = {"anyOf": [*reference.values(), {"type": "null"}]}
    parts["Attempt"]["properties"]["answer"] = {
        "anyOf": [*reference.values(), {"$ref": "#/$defs/TurnAnswer"}, {"type": "null"}]
    }

    def where(key: str, value: str, **then: Any) -> dict[str, Any]:
        return {"if": {"properties": {key: {"const": value}}}, "then": {"properties": then}}

    record["allOf"] = [
        *(where("task", task, answer={"anyOf": [answer, {"type": "null"}]}) for task, answer in reference.items()),
        where("status", "ok", answer={"type": "object"}, error={"type": "null"}),
        where("status", "failed", error={"type": "object"}),
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **record, "$defs": parts}


def stimulus_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line of a stimulus set."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "turinglike.stimulus/1",
        **ADAPTER.json_schema(mode="validation"),
    }
