"""Texts by vLLM's ``LLM.generate`` on the CPU: ``vllm_generate.py FOLDER REQUESTS OUT``."""

import os
import sys

from timed import Row, Times, by_kind, read, write

times = Times()


def main(folder: str, requests: str, out: str) -> None:
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with times.part("loading"):
        from vllm import LLM, SamplingParams

        llm = LLM(model=folder, dtype="float32", enforce_eager=True, max_model_len=2048, seed=1)
        tokenizer = llm.get_tokenizer()
        # The first call is slower by the time that kernels are chosen in, as it is with every engine.
        llm.generate("Hi", SamplingParams(max_tokens=1), use_tqdm=False)

    def generate(rows: list[Row]) -> list[Row]:
        options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True}
        tokens = tokenizer.apply_chat_template([row["messages"] for row in rows], **options)["input_ids"]
        samplings = [
            SamplingParams(
                temperature=row["temperature"],
                top_p=row["top_p"],
                frequency_penalty=row["frequency_penalty"],
                presence_penalty=row["presence_penalty"],
                max_tokens=row["max_tokens"],
                stop=row["stop"],
                seed=row["seed"] % 2**31,
            )
            for row in rows
        ]
        answers = []
        outputs = llm.generate([{"prompt_token_ids": ids} for ids in tokens], samplings, use_tqdm=False)
        for row, output in zip(rows, outputs, strict=True):
            said = output.outputs[0]
            counts = {"prompt_tokens": len(output.prompt_token_ids), "tokens": len(said.token_ids)}
            answers.append({"id": row["id"], "text": said.text, "finish": said.finish_reason, **counts})
        return answers

    for kind, rows in by_kind(read(requests)).items():
        with times.part(kind):
            write(out, generate(rows))
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
