"""The no-op agent behind FastAPI and uvicorn, without a queue and a disk: ``plain_fastapi.py TEMPLATE PORT``."""

import sys

import uvicorn
from fastapi import FastAPI, Response
from noop_record import Records
from pydantic import BaseModel


class Stimulus(BaseModel):
    id: str
    task: str
    cue: str


class Asking(BaseModel):
    agent: str
    stimulus: Stimulus
    seed: int


def main(template: str, port: str) -> None:
    app = FastAPI()
    records = Records(template)

    @app.post("/answers")
    async def answers(asking: Asking) -> Response:
        return Response(records.record(asking.model_dump()), media_type="application/json")

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
