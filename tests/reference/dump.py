# SPDX-License-Identifier: Apache-2.0
"""Reads an OTF2 archive to its end with the reference binding and prints it as JSON lines.

First the definitions that events refer to, one object a line with the key "def", then all events in
the order of the global reader, with the key "event". Run with the distribution's own Python, which
python3-otf2 belongs to:  /usr/bin/python3 dump.py traces.otf2
Without an archive it reads those that standard input names, each in a process of its own, and says
after each with which status that ended. So the binding is loaded once.
"""
import json
import os
import sys

import otf2


def plain(value):
    """A value as JSON can hold it: definitions become their ids, enumerations their names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "_ref"):
        return value._ref
    return str(value)


def dump(path, out):
    with otf2.reader.open(path) as trace:
        defs = trace.definitions

        def put(kind, **fields):
            out.write(json.dumps({"def": kind, **fields}) + "\n")

        c = defs.clock_properties
        put("clock", resolution=c.timer_resolution, offset=c.global_offset, length=c.trace_length)
        for g in defs.location_groups:
            put("location_group", id=g._ref, name=g.name, type=str(g.location_group_type),
                creator=plain(g.creating_location_group))
        for l in defs.locations:
            put("location", id=l._ref, name=l.name, type=str(l.type), group=l.group._ref,
                events=l.number_of_events)
        for r in defs.regions:
            put("region", id=r._ref, name=r.name, role=str(r.region_role), paradigm=str(r.paradigm))
        for k in defs.comms:
            put("comm", id=k._ref, name=k.name, members=[plain(m) for m in k.group.members])
        n = 0
        for location, event in trace.events:
            fields = {k: plain(v) for k, v in vars(event).items() if k not in ("time", "attributes")}
            attributes = {}
            if event.attributes:
                attributes = {a.name: (v.value if hasattr(v, "value") else plain(v))
                              for a, v in event.attributes.items()}
            out.write(json.dumps({"event": type(event).__name__, "location": location._ref,
                                  "time": event.time, **fields, "attributes": attributes}) + "\n")
            n += 1
        put("end", events=n)


def serve():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            dump(line.rstrip("\n"), sys.stdout)
            sys.exit()
        _, status = os.waitpid(child, 0)
        print(json.dumps({"def": "read", "status": status}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        dump(sys.argv[1], sys.stdout)
    else:
        serve()
