"""Texts by transformers, each kind as one padded batch: ``transformers_batch.py FOLDER REQUESTS OUT``."""

import sys

from timed import Row, Times, by_kind, read, write

times = Times()


def main(folder: str, requests: str, out: str) -> None:
    with times.part("loading"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        torch.manual_seed(1)

    def generate(rows: list[Row]) -> list[Row]:
        chats = [row["messages"] for row in rows]
        options = {"add_generation_prompt": True, "padding": True, "return_tensors": "pt", "return_dict": True}
        inputs = tokenizer.apply_chat_template(chats, **options)
        with torch.inference_mode():
            generated = model.generate(
                **inputs,
                do_sample=True,
                temperature=rows[0]["temperature"],
                top_p=rows[0]["top_p"],
                top_k=0,
                max_new_tokens=rows[0]["max_tokens"],
                pad_token_id=tokenizer.pad_token_id,
            )
        answers = []
        for row, tokens, mask in zip(rows, generated, inputs["attention_mask"], strict=True):
            new = tokens[inputs["input_ids"].shape[1] :].tolist()
            ended = tokenizer.eos_token_id in new
            kept = new[: new.index(tokenizer.eos_token_id)] if ended else new
            text = tokenizer.decode(kept, skip_special_tokens=True)
            counts = {"prompt_tokens": int(mask.sum()), "tokens": len(kept)}
            answers.append({"id": row["id"], "text": text, "finish": "stop" if ended else "length", **counts})
        return answers

    for kind, rows in by_kind(read(requests)).items():
        with times.part(kind):
            write(out, generate(rows))
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
