# SPDX-License-Identifier: Apache-2.0
"""What pipit reads of an archive, as JSON: per process and thread the enters, leaves and those of them that it finds no
counterpart of, and who sent how much to whom."""
import json
import sys

import pipit

trace = pipit.Trace.from_otf2(sys.argv[1])
matrix = trace.comm_matrix().tolist()
trace.calc_exc_metrics()
events = trace.events
rows = []
for (process, thread), of in events.groupby(["Process", "Thread"], observed=True):
    pairs = of[of["Event Type"].isin(["Enter", "Leave"])]
    rows.append({
        "process": int(process), "thread": int(thread), "events": len(of),
        "enters": int((of["Event Type"] == "Enter").sum()), "leaves": int((of["Event Type"] == "Leave").sum()),
        "unmatched": int(pairs["_matching_event"].isnull().sum()),
        "negative": int((pairs["time.exc"] < 0).sum()),
    })
json.dump({"rows": rows, "matrix": matrix}, sys.stdout)
