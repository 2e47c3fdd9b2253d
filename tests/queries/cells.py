# SPDX-License-Identifier: Apache-2.0
"""cells.py FILE: runs the cells of a notebook in a file of Python as a notebook does, one after the other in one namespace, and gives as JSON what
each has printed, and what the namespace holds that is plain data, for python_test.go."""
import contextlib
import io
import json
import re
import sys

import matplotlib

matplotlib.use("Agg")
with open(sys.argv[1], encoding="utf-8") as file:
    cells = re.split(r"^# %%", file.read(), flags=re.MULTILINE)[1:]
space, printed = {"__name__": "__main__"}, []
for cell in cells:
    title, _, code = cell.partition("\n")
    if title.strip() == "[markdown]":
        assert all(line.startswith("#") for line in code.splitlines() if line), code
        continue
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, sys.argv[1], "exec"), space)
    printed.append(out.getvalue())
for picture in ("waiting", "bandwidth"):
    space[picture].figure.savefig(io.BytesIO(), format="png")
json.dump({
    "printed": printed,
    "waits": space["waits"],
    "latest": space["latest"],
    "lines": {picture: len(space[picture].get_lines()) for picture in ("waiting", "bandwidth")},
}, sys.stdout, default=str)
