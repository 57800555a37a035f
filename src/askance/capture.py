"""What a GPU needs: modules of Triton kernels, and a repeated step.

On CUDA the step is recorded once and replayed, to save the time of kernel launches.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

# Libraries choose algorithms and make workspaces in the first calls, which cannot be recorded.
_WARM_UP = 2


@cache
def triton_kernels(name: str) -> ModuleType | None:
    """A module of Triton kernels, by its whole name; None where Triton is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Repeated:
    """A step without arguments; calling it runs it. On a CPU that is all.

    On CUDA the first call tries it out, restores `state` and records it; every call then replays it on
    a stream of its own. All that a step changes must be in `state`, and it must not wait for the host.

    Args:
        step: what to run.
        state: every tensor that it changes in place.
        fresh: called before recording, to drop what must be allocated in it.
        stream: where to run; a stream of its own when None.
    """

    def __init__(
        self,
        step: Callable[[], None],
        state: Sequence[Tensor],
        *,
        fresh: Callable[[], None] = lambda: None,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._step, self._state, self._fresh = step, list(state), fresh
        device = self._state[0].device
        self._stream = stream
        if stream is None and device.type == "cuda":
            self._stream = torch.cuda.Stream(device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, times: int = 1) -> None:
        if self._stream is None:
            for _ in range(times):
                self._step()
            return
        with torch.cuda.stream(self._stream):
            if self._graph is None:
                self._record(self._stream)
            assert self._graph is not None
            for _ in range(times):
                self._graph.replay()

    def wait(self) -> None:
        """Make the current stream wait until this stream is done."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _record(self, stream: torch.cuda.Stream) -> None:
        stream.wait_stream(torch.cuda.default_stream(stream.device))
        before = [tensor.detach().clone() for tensor in self._state]
        for _ in range(_WARM_UP):
            self._step()
        with torch.no_grad():
            torch._foreach_copy_([tensor.detach() for tensor in self._state], before)
        del before
        self._fresh()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            self._step()
