"""How a GPU computes: what is settled before a model is loaded, and what of it a record should tell."""

from __future__ import annotations

from typing import Any


def settle(kind: str) -> None:
    """On devices of the ``kind`` "cuda" let float32 be float32: neither products of matrices nor convolutions, where
    torch itself would have it, round their factors to TF32's 10 bits.

    What is computed in bfloat16 or float16 is as fast as before.
    """
    import torch

    if kind == "cuda":
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False


def provenance() -> dict[str, Any]:
    """The device's name, torch's version of CUDA, the precision of float32, and the kernels that torch may choose from
    for attention, by the shape of each batch."""
    import torch

    kernels = {
        "flash": torch.backends.cuda.flash_sdp_enabled(),
        "efficient": torch.backends.cuda.mem_efficient_sdp_enabled(),
        "cudnn": torch.backends.cuda.cudnn_sdp_enabled(),
        "math": torch.backends.cuda.math_sdp_enabled(),
    }
    return {
        "gpu": torch.cuda.get_device_name(0),
        "cuda": torch.version.cuda,
        "float32": torch.get_float32_matmul_precision(),
        "tf32_convolutions": torch.backends.cudnn.allow_tf32,
        "sdpa": [name for name, is_enabled in kernels.items() if is_enabled],
    }
