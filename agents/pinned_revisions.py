"""The commits of the hub that published checkpoints are taken at, where no other revision is asked for.

They were found in what others have published of their own caches; no network was there to compare them with the hub.
What stands not here (DialoGPT, BlenderBot, OFA, CLIP, OpenFlamingo) is taken from its main branch as it was when it was
fetched.
"""

from __future__ import annotations

PINNED = {
    "Qwen/Qwen2.5-7B-Instruct": "a09a35458c702b33eeacc393d103063234e8bc28",
    "Salesforce/blip-image-captioning-base": "82a37760796d32b1411fe092ab5d4e227313294b",
    "Salesforce/blip-image-captioning-large": "2227ac38c9f16105cb0412e7cab4759978a8fd90",
    "Salesforce/blip2-opt-2.7b": "59a1ef6c1e5117b3f65523d1c6066825bcf315e3",
    "facebook/detr-resnet-50": "1d5f47bd3bdd2c4bbfa585418ffe6da5028b4c0b",
    "llava-hf/llava-v1.6-mistral-7b-hf": "52320fb52229c8d942b1dcb8b63b3dc8087bc83b",
    "meta-llama/Llama-3.1-8B-Instruct": "0e9e39f249a16976918f6564b8830bc894c89659",
    "meta-llama/Llama-3.3-70B-Instruct": "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
    "microsoft/git-base-coco": "a13141da42abd4a8cbf283601a8104265f537cee",
    "microsoft/git-large-coco": "b644b0b41274649f87de8846fa15f9a22dad7583",
    "openai-community/gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "openai-community/gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "sentence-transformers/all-MiniLM-L6-v2": "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
}
