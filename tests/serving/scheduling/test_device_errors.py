"""What is done about errors, by what torch and the libraries under it say."""

from __future__ import annotations

import pytest
import torch

from serving.scheduling.device_errors import FatalDeviceError, is_fatal, is_out_of_memory

ACCELERATOR_ERROR: type[Exception] = getattr(torch, "AcceleratorError", RuntimeError)  # torch before 2.8 has none
HINT = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
HALVED = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB"),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.18 GiB total capacity)"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
    RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
    RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`"),
    RuntimeError("FIND was unable to find an engine to execute this computation"),
    RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    MemoryError(),
]
FATAL = [
    ACCELERATOR_ERROR("CUDA error: device-side assert triggered" + HINT),
    RuntimeError("CUDA error: an illegal memory access was encountered" + HINT),
    RuntimeError("CUDA error: misaligned address" + HINT),
    RuntimeError("CUDA error: unspecified launch failure" + HINT),  # Xid 13, 31, 79: the card fell off the bus
    RuntimeError("CUDA error: uncorrectable ECC error encountered" + HINT),  # Xid 48
    RuntimeError("CUDA error: uncorrectable NVLink error detected during the execution" + HINT),  # Xid 74
    RuntimeError("CUDA error: the launch timed out and was terminated" + HINT),  # Xid 8
    RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable" + HINT),
    RuntimeError("CUDA error: no CUDA-capable device is detected" + HINT),
    RuntimeError("CUDA error: unknown error" + HINT),
    RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k)`"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA driver error: unknown error"),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
    RuntimeError("No CUDA GPUs are available"),
    RuntimeError(
        "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices()"
    ),
    RuntimeError(
        'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":995, please report a bug'
    ),
    RuntimeError("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
]
FULL = [  # fatal, and the next process asks for less
    ACCELERATOR_ERROR("CUDA error: out of memory" + HINT),
    RuntimeError("CUDA driver error: out of memory"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
]
OF_THE_STIMULUS = [
    RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED."),
    RuntimeError("cuDNN error: CUDNN_STATUS_BAD_PARAM"),
    RuntimeError("The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 0"),
    RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
    ValueError("the cue reads: CUDA error: an illegal memory access was encountered"),
]


@pytest.mark.parametrize("error", HALVED, ids=lambda error: str(error)[:40])
def test_less_at_once_may_do(error: BaseException) -> None:
    assert (is_out_of_memory(error), is_fatal(error)) == (True, False)


@pytest.mark.parametrize("error", FATAL, ids=lambda error: str(error)[:40])
def test_the_process_is_given_up(error: BaseException) -> None:
    assert (is_out_of_memory(error), is_fatal(error)) == (False, True)
    assert not FatalDeviceError(str(error)).of_memory


@pytest.mark.parametrize("error", FULL, ids=lambda error: str(error)[:40])
def test_the_next_process_asks_for_less(error: BaseException) -> None:
    assert is_fatal(error)
    assert FatalDeviceError(str(error)).of_memory


@pytest.mark.parametrize("error", OF_THE_STIMULUS, ids=lambda error: str(error)[:40])
def test_the_process_goes_on(error: BaseException) -> None:
    assert (is_out_of_memory(error), is_fatal(error)) == (False, False)
