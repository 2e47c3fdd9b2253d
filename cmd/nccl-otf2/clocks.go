// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// printClocks reports how the clocks of a run's hosts were synchronized, and for which hosts that failed.
func printClocks(w io.Writer, s *scorep.ClockSync, warn func(format string, args ...any)) {
	var corrected, untied, oneSided, references, outliers int
	var offset, uncertainty, drift float64
	for i := range s.Hosts {
		h := &s.Hosts[i]
		outliers += h.Outliers
		switch h.State {
		case scorep.SyncUntied:
			untied++
			continue
		case scorep.SyncReference:
			references++
			continue
		case scorep.SyncOneSided:
			oneSided++
		case scorep.SyncCorrected:
			corrected++
			if h.UncertaintyMost != nil {
				uncertainty = max(uncertainty, *h.UncertaintyMost)
			}
		}
		offset = max(offset, abs(float64(h.OffsetStart)), abs(float64(h.OffsetEnd)))
		drift = max(drift, abs(h.DriftPPM))
	}
	if corrected+oneSided > 0 {
		printable.Fprintf(w, "  clocks of %s corrected by up to %v and %.3g ppm",
			count(corrected+oneSided, "host", "hosts"), nanoseconds(offset), drift)
		if corrected > 0 {
			printable.Fprintf(w, ", to within %v", nanoseconds(uncertainty))
		}
		printable.Fprintf(w, " (%s between hosts)\n", count(s.Exchanges, "operation", "operations"))
	}
	if references > 1 {
		warn("there are %d sets of hosts that no operation ties together: times of different sets cannot be compared",
			references)
	}
	if oneSided > 0 {
		warn("the clocks of %s are known from one side only, as no operations go both ways: the uncertainty has no "+
			"bound", count(oneSided, "host", "hosts"))
	}
	if untied > 0 {
		warn("the clocks of %s are as they were: no operation whose times are known ties them to others",
			count(untied, "host", "hosts"))
	}
	if outliers > 0 {
		warn("%s contradicted the other hosts' and did not count for the clocks", count(outliers, "time", "times"))
	}
}

func abs(v float64) float64 { return max(v, -v) }

// nanoseconds returns a duration rounded to three digits.
func nanoseconds(ns float64) time.Duration {
	d := time.Duration(ns)
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
