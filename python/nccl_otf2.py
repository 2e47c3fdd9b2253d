# SPDX-License-Identifier: Apache-2.0
"""Phases of a program in its nccl-otf2 trace, and the tables of recorded runs.

    import nccl_otf2
    with nccl_otf2.phase("step 17"):      # a region on this thread; phases nest
        ...
    nccl_otf2.mark("learning rate 1e-4")  # a moment

Without a recording all of this does nothing. For phases one file is enough, standard library only.

    tables = nccl_otf2.open("exp1")       # what `nccl-otf2 export --parquet exp1` wrote, see nccl_otf2_tables.py
    tables.rows("waits")

python -m nccl_otf2 waits exp1 --engine duckdb asks from the shell, and python -m nccl_otf2 plugin prints what NCCL_PROFILER_PLUGIN
has to be for a job to be recorded. For tables nccl_otf2_tables.py must be there, too, and DuckDB or PySpark.
"""
import builtins
import contextlib
import ctypes
import os
import platform
import site
import sysconfig
import time
from typing import Any, Dict, Iterator, Optional

_library, _looked = None, -1.0


def _plugin():
    """Returns the plugin once NCCL has loaded it, else None; this module never loads it."""
    global _library, _looked
    if _library is None and time.monotonic() - _looked > 1:  # NCCL loads it with its first communicator
        _looked = time.monotonic()
        with builtins.open("/proc/self/maps", errors="replace") as maps:
            paths = {line.split(maxsplit=5)[5].rstrip() for line in maps if "ccl-profiler" in line}
        for path in paths:
            with contextlib.suppress(OSError, AttributeError):  # another profiler's
                library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
                library.nccl_otf2_mark.argtypes = library.nccl_otf2_phase_begin.argtypes = [ctypes.c_char_p]
                _library = library
    return _library


@contextlib.contextmanager
def phase(name: object) -> Iterator[None]:
    library = _plugin()
    if library is not None:
        library.nccl_otf2_phase_begin(str(name).encode())
    try:
        yield
    finally:
        if library is not None:
            library.nccl_otf2_phase_end()


def mark(text: object) -> None:
    if _plugin() is not None:
        _library.nccl_otf2_mark(str(text).encode())


def plugin() -> str:
    """Returns the path of the plugin installed with this file, for NCCL_PROFILER_PLUGIN."""
    prefixes = [sysconfig.get_path("data"), site.getuserbase(), os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../..")]
    folders = ["lib", "lib64", f"lib/{platform.machine()}-linux-gnu"]
    paths = [os.path.normpath(os.path.join(prefix, folder, "libnccl-profiler-otf2.so")) for prefix in prefixes for folder in folders]
    for path in paths:
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("the plugin was not installed together with nccl_otf2.py: it is none of " + ", ".join(paths))


def open(*paths: Any, engine: str = "duckdb", session: Optional[Any] = None, unsafe: bool = False) -> Any:
    """The tables of runs: a nccl_otf2_tables.Tables. engine: "duckdb" or "spark"; session: a connection or SparkSession of your own.

    Unless you pass a session or set unsafe, SQL can only read the tables."""
    import nccl_otf2_tables

    return nccl_otf2_tables.Tables(paths, engine, session, unsafe)


def verdict(path: Any, tool: str = "nccl-otf2") -> Dict[str, Any]:
    """Returns the report's verdict on what made the ranks of an archive wait."""
    import nccl_otf2_tables

    return nccl_otf2_tables.verdict(path, tool)


if __name__ == "__main__":
    import sys

    if sys.argv[1:] == ["plugin"]:
        sys.exit(print(plugin()))

    import nccl_otf2_tables

    sys.exit(nccl_otf2_tables.main())
