# SPDX-License-Identifier: Apache-2.0
"""Training steps as phases: an example for PyTorch, one process per GPU.

    NCCL_PROFILER_PLUGIN=otf2 nccl-otf2 run -- torchrun --nproc-per-node=8 training_steps.py

In the trace each step is a region on the thread that trains, with its forward and backward pass inside, and
NCCL's calls inside those.
"""
import os

import torch
import torch.distributed as dist

import nccl_otf2


def main(steps=20):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4096, 4096).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        with nccl_otf2.phase(f"step {step}"):
            batch = torch.randn(64, 4096, device="cuda")
            with nccl_otf2.phase("forward"):
                loss = model(batch).square().mean()
            with nccl_otf2.phase("backward"):
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
    nccl_otf2.mark("training done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
