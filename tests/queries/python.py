# SPDX-License-Identifier: Apache-2.0
"""python.py TOOL DIR NET: what the Python modules say of a run, DIR, and of one with transfers, NET, as JSON for python_test.go."""
import json
import sys

import matplotlib

import nccl_otf2
import nccl_otf2_plots
import nccl_otf2_torch

matplotlib.use("Agg")
tool, folder, net = sys.argv[1:]
tables = nccl_otf2.open(folder)


def lines(axes):
    return {line.get_label(): [list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))] for line in axes.get_lines()}


def drawn(axes):
    axes.figure.savefig(sys.stderr.buffer, format="svg")  # drawing is what fails, if anything does
    return axes


class Optimizer:
    """As torch.optim.Optimizer calls the hooks of register_step_post_hook."""

    def __init__(self):
        self.hooks = []

    def register_step_post_hook(self, hook):
        self.hooks.append(hook)
        return self

    def remove(self):
        self.hooks.clear()

    def step(self):
        for hook in self.hooks:
            assert hook(self, (), {}) is None


def phases():
    """What the plugin is told while an optimizer makes two steps."""
    received = []

    class Library:
        nccl_otf2_phase_begin = staticmethod(lambda name: received.append("begin " + name.decode()))
        nccl_otf2_phase_end = staticmethod(lambda: received.append("end"))

    nccl_otf2._library = Library
    optimizer = Optimizer()
    steps = nccl_otf2_torch.steps(optimizer)
    optimizer.step()
    optimizer.step()
    steps.remove()
    optimizer.step()
    return received


json.dump({
    "waits": tables.waits(),
    "bandwidths": tables.bandwidths(),
    "verdict": nccl_otf2.verdict(folder, tool),
    "bandwidth_lines": lines(drawn(nccl_otf2_plots.bandwidth(tables))),
    "waiting_lines": lines(drawn(nccl_otf2_plots.waiting(tables))),
    "lateness": tables.rows("lateness"),
    "matrix": nccl_otf2.open(net).rows("matrix"),
    "matrix_cells": drawn(nccl_otf2_plots.matrix(nccl_otf2.open(net))).get_images()[0].get_array().tolist(),
    "phases": phases(),
}, sys.stdout, default=str)
