# SPDX-License-Identifier: Apache-2.0
"""Reads a trace with Perfetto's own definitions of its format, and with its trace_processor if one is given.

read_pftrace.py TRACE [TRACE_PROCESSOR]: JSON with what each of both counts.
"""

import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

REGIONS = "SELECT category, name, count(*) AS n, sum(dur) AS ns FROM slice GROUP BY 1, 2"
SIZES = """SELECT sum(extract_arg(arg_set_id, 'debug.size_bytes')) AS n FROM slice WHERE category NOT IN ('wait', 'answer')"""
FAILED = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


def unknown(message):
    """The number of fields, in all depths, that the definitions do not have."""
    n = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            n += sum(map(unknown, value if field.is_repeated else [value]))
    return n


def by_definitions(path):
    trace = protos.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    names, categories, keys = {}, {}, {}
    events = []
    for p in trace.packet:
        for table, entries in ((names, p.interned_data.event_names), (categories, p.interned_data.event_categories), (keys, p.interned_data.debug_annotation_names)):
            table.update((e.iid, e.name) for e in entries)
        if p.HasField("track_event"):
            events.append((p.timestamp, p.track_event))
    events.sort(key=lambda e: e[0])
    open_, regions, counters, sizes, flows = collections.defaultdict(list), collections.defaultdict(lambda: [0, 0]), 0, 0, collections.Counter()
    kinds = protos.TrackEvent
    for at, e in events:
        key = (categories[e.category_iids[0]] if e.category_iids else "", names.get(e.name_iid))
        if e.type in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT):
            regions[key][0] += 1
        if e.type == kinds.TYPE_SLICE_BEGIN:
            open_[e.track_uuid].append((at, key))
        elif e.type == kinds.TYPE_SLICE_END:
            begin, key = open_[e.track_uuid].pop()
            regions[key][1] += at - begin
        counters += e.type == kinds.TYPE_COUNTER
        if key[0] not in ("wait", "answer"):
            sizes += sum(a.uint_value for a in e.debug_annotations if keys[a.name_iid] == "size_bytes")
        flows.update(e.flow_ids)
    return {
        "unknown": unknown(trace),
        "regions": sorted([c, n, *v] for (c, n), v in regions.items()),
        "counters": counters,
        "sizes": sizes,
        "flows": sum(n - 1 for n in flows.values()),
        "realtime": next(c.timestamp for c in trace.packet[0].clock_snapshot.clocks if c.clock_id == protos.BUILTIN_CLOCK_REALTIME),
    }


def by_sql(path, program):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=program)) as tp:
        one = lambda sql: next(iter(tp.query(sql))).n
        return {
            "unknown": {r.name: r.value for r in tp.query(FAILED)},
            "regions": sorted([r.category or "", r.name, r.n, r.ns] for r in tp.query(REGIONS)),
            "counters": one("SELECT count(*) AS n FROM counter"),
            "sizes": one(SIZES) or 0,
            "flows": one("SELECT count(*) AS n FROM flow"),
            "realtime": one("SELECT start_ts AS n FROM trace_bounds"),
        }


found = {"definitions": by_definitions(sys.argv[1])}
if len(sys.argv) > 2:
    found["sql"] = by_sql(sys.argv[1], sys.argv[2])
json.dump(found, sys.stdout)
