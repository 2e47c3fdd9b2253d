# SPDX-License-Identifier: Apache-2.0
"""A program with phases: loads the plugin that the argument names and makes a communicator, as NCCL does, then marks
what it does with python/nccl_otf2.py. Before that the marks do nothing."""
import ctypes
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import nccl_otf2  # noqa: E402

INIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.POINTER(ctypes.c_int),
                        ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
FINALIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Profiler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("init", INIT), ("start", ctypes.c_void_p), ("stop", ctypes.c_void_p),
                ("state", ctypes.c_void_p), ("finalize", FINALIZE)]


with nccl_otf2.phase("too early"):
    nccl_otf2.mark("too early")

nccl_otf2._looked = -1.0  # at once, not a second later
plugin = Profiler.in_dll(ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW), "ncclProfiler_v5")
context, mask = ctypes.c_void_p(), ctypes.c_int(0)
assert plugin.init(ctypes.byref(context), 0xabcd, ctypes.byref(mask), b"dp", 1, 2, 0, None) == 0
assert mask.value != 0, "nothing is recorded"

for step in range(3):
    with nccl_otf2.phase(f"step {step}"):
        with nccl_otf2.phase("forward"):
            pass
        try:
            with nccl_otf2.phase("backward"):
                raise ValueError("phases end when something goes wrong, too")
        except ValueError:
            pass
nccl_otf2.mark("training done")


def other():
    with nccl_otf2.phase("on another thread"):
        pass


thread = threading.Thread(target=other)
thread.start()
thread.join()
assert plugin.finalize(context) == 0
