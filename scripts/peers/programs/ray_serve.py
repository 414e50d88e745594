"""The no-op agent behind Ray Serve with ``@serve.batch``: ``ray_serve.py TEMPLATE PORT``."""

import sys
from pathlib import Path
from typing import Any

import ray
from noop_record import Records
from ray import serve
from starlette.requests import Request
from starlette.responses import Response


@serve.deployment(max_ongoing_requests=256)
class Null:
    def __init__(self, template: str) -> None:
        self._records = Records(template)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.004)
    async def answer(self, bodies: list[dict[str, Any]]) -> list[bytes]:
        return [self._records.record(body) for body in bodies]

    async def __call__(self, request: Request) -> Response:
        return Response(await self.answer(await request.json()), media_type="application/json")


def main(template: str, port: str) -> None:
    path = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, runtime_env=path)
    serve.start(http_options={"host": "127.0.0.1", "port": int(port)}, logging_config={"enable_access_log": False})
    serve.run(Null.bind(template), route_prefix="/answers", blocking=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
