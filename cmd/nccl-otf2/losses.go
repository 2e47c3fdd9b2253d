// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
)

// losses counts the events that are missing in an archive or a profile, by reason.
type losses struct {
	all           uint64
	fromDisk      uint64 // of these: were written and cannot be read
	withCollector uint64 // of these: operations that a collector held when it died
	beforeImport  uint64 // of these: operations that another profiler's files lack

	uncounted []string // processes whose losses are not known; not counted above
}

// profileLosses returns the losses of a profile.
func profileLosses(p *cubex.Profile) losses {
	return losses{
		all: p.Lost(), fromDisk: p.LostBy(loss.FromDisk),
		withCollector: p.LostBy(loss.WithCollector), uncounted: p.LostUncounted(),
		beforeImport: p.LostBy(loss.ByWriter) + p.LostBy(loss.FromInput),
	}
}

// formatLines returns one line for each reason. For an archive, it refers to the report for details.
func (l losses) formatLines(archive bool) (list []string) {
	further := ""
	if archive {
		further = "`nccl-otf2 report` says why; "
	}
	if l.fromDisk > 0 {
		list = append(list, count(l.fromDisk, "event record is",
			"event records are")+" missing that had been written: files are damaged or gone")
	}
	if n := l.all - min(l.all, l.fromDisk+l.withCollector+l.beforeImport); n > 0 {
		list = append(list, count(n, "event was", "events were")+
			" not recorded, for want of memory (NCCL_OTF2_MEMORY) or disk: "+further+"NCCL_OTF2_EVENTS may ask for "+
			"less")
	}
	if l.withCollector > 0 {
		list = append(list, count(l.withCollector, "operation is",
			"operations are")+" missing: a collector that died had them in memory")
	}
	if l.beforeImport > 0 {
		list = append(list, count(l.beforeImport, "operation is", "operations are")+
			" not in what was imported: the profiler dropped them, left them out for their size, or wrote them "+
			"elsewhere")
	}
	for _, text := range l.uncounted {
		list = append(list, "an unknown number of events is missing: "+text)
	}
	return list
}
