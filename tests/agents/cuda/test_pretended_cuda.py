"""The pretended device against what is known of CUDA: what it refuses, what it permits, and what the host waits for."""

from __future__ import annotations

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pretended_cuda import Pretended, is_ours, pretended_cuda
from torch import nn
from transformers import TopKLogitsWarper


@pytest.fixture
def cuda():
    with pretended_cuda() as pretence:
        yield pretence


def made():
    """x and y on the device, with an index and a mask; the same on the CPU, in capitals."""
    x, i = torch.arange(6.0).view(2, 3), torch.tensor([1, 0])
    return {"x": x.to("cuda"), "i": i.to("cuda"), "m": (x > 2).to("cuda"), "X": x, "J": i, "M": x > 2}


REFUSED = {
    "sum": lambda x, X, **_: x + X,
    "sum, swapped": lambda x, X, **_: X + x,
    "number of the device and the CPU's values": lambda x, X, **_: X + x.sum(),
    "in place": lambda x, X, **_: x.add_(X),
    "in place on the CPU": lambda x, X, **_: X.add_(x),
    "in place on a number of the CPU": lambda x, **_: torch.tensor(1.0).add_(x.sum()),
    "out": lambda x, X, **_: torch.add(x, x, out=torch.empty(2, 3)),
    "matrices": lambda x, X, **_: x @ X.T,
    "matrices, inference": lambda x, X, **_: torch.inference_mode()(torch.matmul)(x, X.T),
    "matrices of integers": lambda i, **_: i[None] @ i[:, None],
    "cat": lambda x, X, **_: torch.cat([x, X]),
    "stack": lambda x, X, **_: torch.stack([x, X]),
    "stack of numbers": lambda x, X, **_: torch.stack([x.sum(), X.sum()]),
    "where": lambda x, X, m, **_: torch.where(m, x, X),
    "where by the CPU's mask": lambda x, M, **_: torch.where(M, x, 0.0),
    "masked_fill": lambda x, M, **_: x.masked_fill(M, 0),
    "embedding": lambda x, J, **_: F.embedding(J, x),
    "index_select": lambda x, J, **_: x.index_select(0, J),
    "gather": lambda x, J, **_: x.gather(1, J[:, None]),
    "scatter": lambda x, J, **_: x.scatter(1, J[:, None], 0.0),
    "index_fill": lambda x, J, **_: x.index_fill(0, J, 0.0),
    "index_copy": lambda x, X, i, **_: x.index_copy(0, i, X),
    "the CPU's by an index of the device": lambda X, i, **_: X[i],
    "the CPU's by a mask of the device": lambda X, m, **_: X[m],
    "values of the CPU by index": lambda x, X, i, **_: x.__setitem__(i, X),
    "equal": lambda x, X, **_: torch.equal(x, X),
    "isin": lambda i, J, **_: torch.isin(i, J),
    "linear": lambda x, **_: nn.Linear(3, 2)(x),
    "linear on the device": lambda X, **_: nn.Linear(3, 2).to("cuda")(X),
    "convolution": lambda x, X, **_: F.conv2d(x[None, None], X[None, None]),
    "norm": lambda x, **_: F.layer_norm(x, (3,), torch.ones(3)),
    "attention": lambda x, X, **_: F.scaled_dot_product_attention(x[None], x[None], X[None]),
    "attention, inference": lambda x, X, **_: torch.inference_mode()(F.scaled_dot_product_attention)(
        x[None], x[None], x[None], attn_mask=torch.ones(2, 2)
    ),
    "generator of the CPU": lambda **_: torch.randn(2, device="cuda", generator=torch.Generator()),
    "pin_memory": lambda x, **_: x.pin_memory(),
    "numpy": lambda x, **_: x.numpy(),
    "asarray": lambda x, **_: np.asarray(x),
    "from_numpy": lambda x, **_: x + torch.from_numpy(np.ones((2, 3), np.float32)),
    "other types": lambda x, **_: x @ x.T.half(),
}  # fmt: skip
PERMITTED = {
    "number of the CPU": lambda x, X, **_: x * torch.tensor(2.0) + X.sum(),
    "in place by a number of the CPU": lambda x, **_: x.clone().add_(torch.tensor(2.0)),
    "where of numbers": lambda x, m, **_: torch.where(m, x, torch.tensor(7.0)),
    "masked_fill": lambda x, m, **_: x.masked_fill(m, torch.tensor(7.0)),
    "index of the CPU": lambda x, J, **_: x[J],
    "mask of the CPU": lambda x, M, **_: x[M],
    "lists": lambda x, **_: x[[1, 0]][:, [True, False, True]],
    "numbers by index and mask": lambda x, i, m, **_: _set(x, (i, 2.0), (m, 7.0), (slice(1), 3)),
    "copy from the CPU": lambda x, X, **_: torch.empty_like(x).copy_(X),
    "copy, not pinned": lambda X, **_: X.to("cuda", non_blocking=True),
    "copy, pinned": lambda X, **_: X.pin_memory().to("cuda", non_blocking=True),
    "cuda()": lambda X, **_: X.cuda(),
    "new_tensor": lambda x, **_: x.new_tensor([1.0, 2.0]) + torch.tensor([1.0, 2.0], device=x.device),
    "arange": lambda x, **_: torch.arange(3, device=x.device) * x,
    "as_tensor": lambda **_: torch.as_tensor(np.ones(3), device="cuda:0"),
    "device context": lambda **_: _ones_within(torch.device("cuda")),
    "like": lambda x, **_: torch.rand_like(x).clamp(0, 0),
    "in place through a view": lambda x, **_: [x := x.clone(), x[0].zero_(), x][-1],
    "topk": lambda x, **_: x.topk(2, dim=1).values,
    "unbind": lambda x, **_: [row + 1 for row in x][1],
    "attention": lambda x, **_: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "attention, inference": lambda x, **_: torch.inference_mode()(F.scaled_dot_product_attention)(*[x[None]] * 3),
    "half": lambda x, **_: F.softmax(x.half(), -1, dtype=torch.float32),
}  # fmt: skip


def _ones_within(context):
    with context:
        return torch.ones(2)


def _set(x, *pairs):
    x = x.clone()
    for place, value in pairs:
        x[place] = value
    return x


@pytest.mark.parametrize("what", REFUSED)
def test_what_cuda_refuses_is_refused(cuda, what):
    with pytest.raises((RuntimeError, TypeError)):
        REFUSED[what](**made())


@pytest.mark.parametrize("what", PERMITTED)
def test_what_cuda_permits_has_the_values_of_the_cpu(cuda, what):
    found = PERMITTED[what](**made())
    assert isinstance(found, Pretended)
    assert found.device == torch.device("cuda:0")
    assert found.is_cuda
    on_cpu = {name: one.cpu() if isinstance(one, Pretended) else one for name, one in made().items()}
    want = PERMITTED[what](**on_cpu)
    assert torch.equal(want.cpu(), found.cpu())


def test_the_way_back(cuda):
    x = made()["x"]
    assert type(x.cpu()) is torch.Tensor
    assert x.cpu().numpy().tolist() == x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (x.sum().item(), float(x[0, 1]), bool(x.any()), int(x.argmax())) == (15.0, 1.0, True, 5)
    assert torch.zeros(2, 3).copy_(x)[1, 2] == 5


def test_a_module_goes_there_whole_and_its_weights_stay_tied(cuda):
    model = nn.Sequential(nn.Embedding(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 4)).eval()
    model[2].weight = model[0].weight
    want = model(torch.tensor([1, 2])).detach()
    model = model.to("cuda:0")
    assert all(isinstance(one, Pretended) for one in (*model.parameters(), *model.buffers()))
    assert all(isinstance(one, nn.Parameter) for one in model.parameters())
    assert model[2].weight is model[0].weight
    assert torch.equal(model(torch.tensor([1, 2], device="cuda")).cpu(), want)
    assert {one.dtype for one in copy.deepcopy(model).to(torch.bfloat16).parameters()} == {torch.bfloat16}
    model.load_state_dict({name: torch.zeros_like(one, device="cpu") for name, one in model.state_dict().items()})
    assert not model[0].weight.any()
    assert type(model.cpu()[0].weight.data) is torch.Tensor


def test_autocast_is_that_of_the_device(cuda):
    x = made()["x"]
    with torch.autocast("cuda", torch.bfloat16):
        assert (x @ x.T).dtype == torch.bfloat16
        assert (x.cpu() @ x.cpu().T).dtype == torch.float32


def test_nothing_is_left_behind():
    with pretended_cuda():
        x = torch.ones(2, device="cuda")
    assert not torch.cuda.is_available()
    assert torch.ones(2).device.type == "cpu"
    with pytest.raises(RuntimeError, match="outside"):
        x + 1


WAITS = {
    "nothing": lambda x, i, m, **_: [x + 1, x[i], torch.where(m, x, 0), x.masked_fill(m, 0), x.topk(2), x[0].zero_()],
    "item": lambda x, **_: x.sum().item(),
    "item ": lambda x, **_: float(x.sum()),
    "item  ": lambda x, **_: bool(x.any()),
    "item   ": lambda x, **_: x[: x.argmax()],
    "to cpu": lambda x, **_: x.tolist(),
    "to cpu ": lambda x, **_: torch.empty(2, 3).copy_(x),
    "to cuda": lambda **_: torch.tensor([1, 2], device="cuda"),
    "to cuda ": lambda X, **_: X.to("cuda", non_blocking=True),  # not pinned
    "to cuda  ": lambda x, **_: x[[0, 1]],
    "nothing ": lambda X, **_: X.pin_memory().to("cuda", non_blocking=True),
    "nothing  ": lambda x, **_: x.to("cpu", non_blocking=True),
    "nothing   ": lambda x, m, **_: x.__setitem__(m, 0.0),
    "nothing     ": lambda **_: torch.tensor([], device="cuda"),
    "index to cuda": lambda x, J, **_: x[J],
    "index to cuda ": lambda x, i, **_: x.__setitem__(i, 0.0),
    "mask": lambda x, m, **_: x[m],
    "mask ": lambda x, m, **_: x.__setitem__(m, x[0, 0]),
    "nonzero": lambda m, **_: m.nonzero(),
    "nonzero ": lambda m, **_: m.nonzero(as_tuple=True),
    "masked_select": lambda x, m, **_: x.masked_select(m),
    "_unique2": lambda i, **_: i.unique(),
    "equal": lambda x, **_: torch.equal(x, x + 1),
    "repeat_interleave": lambda x, i, **_: x.repeat_interleave(i, 0),
    "nothing    ": lambda x, **_: x.repeat_interleave(2, 0),
}


@pytest.mark.parametrize("what", WAITS)
@pytest.mark.parametrize("inference", [False, True])
def test_what_the_host_waits_for(cuda, what, inference):
    given = made()
    cuda.clear()
    with torch.inference_mode(inference):
        WAITS[what](**given)
    assert [why for why, _ in cuda.waits.elements()] == [what.strip()][: what.strip() != "nothing"]
    assert all("test_pretended_cuda.py:" in where and "<" not in where for _, where in cuda.waits)


def test_what_is_counted_stands_by_the_line_that_asked(cuda):
    x, on_cpu = made()["x"], torch.ones(2, 3)
    cuda.clear()
    (x.view(3, 2).T[0] + 1).mul_(2)
    on_cpu.to("cuda")
    on_cpu.pin_memory().to("cuda", non_blocking=True)
    here = sys._getframe().f_lineno - 3
    file = "tests/agents/cuda/test_pretended_cuda.py"
    assert cuda.launches == {f"{file}:{here}": 2}
    assert cuda.copies == {("to cuda", f"{file}:{here + 1}"): 1, ("to cuda, asynchronous", f"{file}:{here + 2}"): 1}
    assert cuda.waits == {("to cuda", f"{file}:{here + 1}"): 1}
    F.interpolate(x[None], 2)
    assert all(is_ours(where) for where in cuda.launches)
    cuda.clear()
    TopKLogitsWarper(1)(None, x)
    here = sys._getframe().f_lineno - 1
    for where in cuda.launches:
        assert not is_ours(where)
        assert where.startswith("transformers/generation/logits_process.py:")
        assert where.endswith(f" < {file}:{here}")


@pytest.mark.parametrize("into_pinned", [False, True])
def test_what_nobody_waited_for_has_not_arrived(cuda, into_pinned):
    x = torch.arange(3.0).to("cuda")
    where = torch.empty(3, pin_memory=True).copy_(x, non_blocking=True) if into_pinned else None
    found = x.to("cpu", non_blocking=True) if where is None else where
    copied = torch.cuda.Event()
    copied.record()
    cuda.clear()
    assert found.tolist() != [0, 1, 2]
    copied.synchronize()
    assert found.tolist() == [0, 1, 2]
    assert [why for why, _ in cuda.waits] == ["event"]
    copied.synchronize()  # the host knows already
    assert cuda.waits.total() == 1


def test_an_earlier_event_leaves_a_later_copy_on_its_way(cuda):
    x = torch.ones(3).to("cuda") * 5
    with torch.cuda.stream(torch.cuda.Stream()):
        first = torch.cuda.current_stream().record_event()
        found = x.to("cpu", non_blocking=True)
    torch.cuda.current_stream().wait_event(first)
    first.synchronize()
    assert found.tolist() != [5, 5, 5]
    x.sum().item()  # a wait for everything
    assert found.tolist() == [5, 5, 5]
    cuda.clear()
    torch.cuda.synchronize()
    assert not cuda.waits


def test_memory_is_that_of_the_tensors_that_are_alive(cuda):
    mebibyte, before = 1 << 20, cuda.allocated
    x = torch.zeros(mebibyte // 4, device="cuda")
    view = x[10:]
    assert torch.cuda.memory_allocated() - before == mebibyte
    del x
    assert torch.cuda.memory_allocated() - before == mebibyte
    assert (view + 1).numel()
    assert torch.cuda.max_memory_allocated() - before == pytest.approx(2 * mebibyte, abs=1024)
    del view
    assert cuda.allocated == before
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info() == (cuda.memory - before, cuda.memory)
    torch.cuda.set_per_process_memory_fraction(0.001)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(cuda.memory // 1000, dtype=torch.uint8, device="cuda")


def test_draws_of_the_devices_generator(cuda):
    on_device = torch.Generator("cuda").manual_seed(3)
    drawn = torch.empty(4, device="cuda").normal_(generator=on_device)
    assert torch.equal(drawn.cpu(), torch.empty(4).normal_(generator=torch.Generator().manual_seed(3)))


def test_there_is_one_device(cuda):
    with pytest.raises(RuntimeError, match="ordinal"):
        torch.ones(1, device="cuda:1")


def test_another_thread_takes_part(cuda):
    def add():
        with cuda:
            return (torch.ones(2, device="cuda") + 1).tolist()

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(add).result() == [2, 2]
        with pytest.raises(RuntimeError, match="another thread"):
            threads.submit(lambda x: x + 1, made()["x"]).result()
