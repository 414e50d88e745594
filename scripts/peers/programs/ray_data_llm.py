"""Texts by ``ray.data.llm``, whose engine is vLLM: ``ray_data_llm.py FOLDER REQUESTS OUT``. It loads for each kind."""

import os
import sys
from typing import Any

from timed import Row, Times, read, write

times = Times()


def main(folder: str, requests: str, out: str) -> None:
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=256 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    configuration = vLLMEngineProcessorConfig(
        model_source=folder,
        engine_kwargs={"dtype": "float32", "enforce_eager": True, "max_model_len": 2048},
        placement_group_config={"bundles": [{"CPU": 1}]},
        concurrency=1,
        batch_size=64,
    )

    def asked(row: Row) -> Row:
        names = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens")
        return {"messages": row["messages"], "sampling_params": {name: row[name] for name in names}}

    def answered(row: Row) -> Row:
        counts = {"prompt_tokens": row["num_input_tokens"], "tokens": row["num_generated_tokens"]}
        return {"id": row["id"], "text": row["generated_text"], "finish": "stop", **counts}

    processor: Any = build_processor(configuration, preprocess=asked, postprocess=answered)
    with times.part("all"):
        write(out, processor(ray.data.from_items(read(requests))).take_all())
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
