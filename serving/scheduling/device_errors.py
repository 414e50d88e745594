"""What an error says of memory and of the device, whatever library raised it.

Torch and the libraries under it tell by the text of a RuntimeError. After most errors of CUDA every later call of the
process fails too, so the process is given up (:func:`is_fatal`); where a library found no memory, the process goes on
with less at once (:func:`is_out_of_memory`). Memory that ran out where torch's allocator has no hand in it (the device
is full of somebody else's, or no page of the host can be pinned) is both: the next process asks for less.
"""

from __future__ import annotations

import gc
import re
import sys
from typing import Any

# torch's allocators where their error has no type of its own, and the libraries' codes, whatever is before them
NO_MEMORY = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|CUDA out of memory\. Tried to allocate"
    r"|(CUBLAS|CUDNN|CUFFT|CUSOLVER|CUSPARSE|CUSPARSELT)_(STATUS_)?\w*ALLOC(ATION)?_FAILED"
    # cuDNN for a convolution for which there is no room to work in
    r"|unable to find an engine to execute this computation|Unable to find a valid cuDNN algorithm"
)
FATAL = re.compile(
    r"CUDA (driver )?error"
    r"|(cuBLAS|cuDNN|cuFFT|cuSOLVER|cuSPARSE|cusolver|cusparse|CUFFT) error|CUFFT_\w+|CUBLAS_STATUS_\w+"
    r"|Triton Error \[CUDA\]"
    r"|NCCL (Error|error)|ncclUnhandledCudaError"
    r"|CUDA call failed|CUDA-capable device|No CUDA GPUs are available|cudaGetDeviceCount\(\)|CUDA driver init"
    r"|CUDACachingAllocator\.cpp|NVML_\w+|GPU is lost|\bECC\b|\bXid\b"
)
# of a call that cuDNN refused, which does the process no harm
HARMLESS = re.compile(r"CUDNN_STATUS_(NOT_SUPPORTED|BAD_PARAM)")


def is_out_of_memory(error: BaseException) -> bool:
    """Memory ran out on the host or on a device, and less at once may do. Torch need not be loaded: its error is known
    by name."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return True
    return isinstance(error, RuntimeError) and NO_MEMORY.search(str(error)) is not None


def is_fatal(error: BaseException) -> bool:
    """After these errors every later call of the process fails too: CUDA's, and the death of vLLM's own process."""
    if type(error).__name__ == "EngineDeadError":
        return True
    if is_out_of_memory(error) or not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return type(error).__name__ == "AcceleratorError" or (
        FATAL.search(text) is not None and HARMLESS.search(text) is None
    )


class FatalDeviceError(Exception):
    """The device is in a state in which nothing more can be computed by this process."""

    @property
    def of_memory(self) -> bool:
        """Whether it is for want of memory."""
        return "out of memory" in str(self)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
