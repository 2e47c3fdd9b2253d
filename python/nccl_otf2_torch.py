# SPDX-License-Identifier: Apache-2.0
"""PyTorch: the steps of an optimizer as phases, by one line.

    steps = nccl_otf2_torch.steps(optimizer)      # from here on "step 0", "step 1", …; steps.remove() ends it

A step begins where the one before has ended, so batches, forward and backward pass are in it. torch.profiler and this know nothing of
each other and work at the same time; only the GPU's kernels can be recorded by one of them alone (docs/gpu.md).
"""
from contextlib import ExitStack
from typing import Any

import nccl_otf2


class Steps:
    """Phases from one step of an optimizer to the next, on the thread that calls step."""

    def __init__(self, optimizer: Any, name: str) -> None:
        self.name = name
        self.number = 0
        self._open = ExitStack()
        self._handle = optimizer.register_step_post_hook(self._stepped)
        self._begin()

    def _begin(self) -> None:
        self._open.enter_context(nccl_otf2.phase(f"{self.name} {self.number}"))

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._open.close()
        self.number += 1
        self._begin()

    def remove(self) -> None:
        """Ends the open phase and stops marking steps."""
        self._handle.remove()
        self._open.close()


def steps(optimizer: Any, name: str = "step") -> Steps:
    """Marks each step of a torch.optim.Optimizer (PyTorch 2.0 or newer) as a phase. Call it where the first step begins."""
    return Steps(optimizer, name)
