# SPDX-License-Identifier: Apache-2.0
"""Pictures of recorded runs, with matplotlib.

    tables = nccl_otf2.open("exp1")
    nccl_otf2_plots.bandwidth(tables).figure.savefig("bandwidth.svg")

Each function draws what one of the questions answers (docs/tables.md) into axes, new ones if none are given, and returns them.
"""
from typing import Any, Dict, List, Optional, Tuple

from nccl_otf2_tables import Tables


def _axes(axes: Optional[Any]) -> Any:
    if axes is not None:
        return axes
    import matplotlib.pyplot

    return matplotlib.pyplot.subplots()[1]


def bandwidth(tables: Tables, axes: Optional[Any] = None) -> Any:
    """Plots bus bandwidth over size, a line per communicator and function; at each size the median of the kind with the most time."""
    lines: Dict[Tuple[str, str], Dict[int, Tuple[float, float]]] = {}
    for row in tables.rows("bandwidths"):
        if row["busbw_gbs"] and row["size_bytes"] > 0:
            line = lines.setdefault((row["communicator"], row["function"]), {})
            line[row["size_bytes"]] = max(line.get(row["size_bytes"], (0.0, 0.0)), (row["total_ns"], row["busbw_gbs"]))
    axes = _axes(axes)
    for (communicator, function), line in sorted(lines.items()):
        sizes = sorted(line)
        axes.plot(sizes, [line[size][1] for size in sizes], marker="o", label=f"{function} on {communicator}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("size, bytes")
    axes.set_ylabel("bus bandwidth, GB/s")
    if lines:
        axes.legend()
    return axes


def waiting(tables: Tables, axes: Optional[Any] = None, ranks: int = 8) -> Any:
    """Plots waiting over time: for the ranks waited for the most, the waiting in each sixtieth of the run."""
    rows = tables.rows("lateness")
    runs = {row["run"] for row in rows}
    if len(runs) > 1:
        raise ValueError(f"waiting over time is of one run, and there are {len(runs)}")
    begin = min((row["window_ns"] for row in rows), default=0)
    total: Dict[str, int] = {}
    for row in rows:
        total[row["rank_name"]] = total.get(row["rank_name"], 0) + row["caused_ns"]
    axes = _axes(axes)
    for name in sorted(total, key=lambda name: -total[name])[:ranks]:
        own = [row for row in rows if row["rank_name"] == name]
        axes.plot([(row["window_ns"] - begin) / 1e9 for row in own], [row["caused_ns"] / 1e9 for row in own], marker=".", label=name)
    axes.set_xlabel("time since the first wait, s")
    axes.set_ylabel("the others waited for it, s")
    if rows:
        axes.legend()
    return axes


def matrix(tables: Tables, axes: Optional[Any] = None) -> Any:
    """Plots the network traffic between ranks: senders as rows, receivers as columns."""
    rows = tables.rows("matrix")
    names: List[str] = list(dict.fromkeys([row["from_name"] for row in rows] + [row["to_name"] for row in rows]))
    cells = [[0.0] * len(names) for _ in names]
    for row in rows:
        cells[names.index(row["from_name"])][names.index(row["to_name"])] += row["bytes"]
    axes = _axes(axes)
    if names:
        picture = axes.imshow(cells)
        axes.figure.colorbar(picture, ax=axes, label="bytes")
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    return axes
