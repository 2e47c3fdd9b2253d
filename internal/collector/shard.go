// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// shard is the folder that a recording fills, and the process that shard.json in it describes.
type shard struct {
	store   *experiment.Store
	process *description.Process

	taken   positions             // records that are on disk, or pending, once the flush at hand is over
	markers []description.Marker  // since the last snapshot
	pending []description.Pending // operations under way when the process ended; nil before
	end     *description.End      // of the process; nil: it has not ended, or nobody knows

	locations    int    // so far
	defined      int    // definitions in shard.json
	descriptions uint64 // how often shard.json has been written
}

// writeDefinitions writes shard.json if definitions have come since it was last written. A chunk of events goes to disk
// when it is full, whether a flush is due or not, and what it refers to must be there before it. Everything else in the
// description stays as of the last snapshot.
func (s *shard) writeDefinitions() error {
	if s.definitions() == s.defined {
		return nil
	}
	return s.write()
}

// write replaces shard.json.
func (s *shard) write() error {
	s.descriptions++
	defined := s.definitions()
	err := s.store.Write(s.process)
	if err == nil {
		s.defined = defined
	}
	return err
}

// definitions counts the definitions that events refer to.
func (s *shard) definitions() int {
	p := s.process
	return len(p.Strings) + len(p.Regions) + len(p.Comms) + len(p.Metrics) + s.locations
}

// markHigh adds a marker of high severity, which belongs to no location.
func (s *shard) markHigh(time uint64, category, text string) {
	s.markers = append(s.markers, description.Marker{
		Time: time, Severity: regions.SeverityHigh, Category: category, Location: -1, Text: text,
	})
}

// threadName is the name that the system has for a thread of the process; "" once the process has ended.
func (s *shard) threadName(tid int) string {
	if start, err := shm.ProcessStart(s.process.PID); err != nil || start != s.process.PIDStart {
		return ""
	}
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", s.process.PID, tid))
	return strings.TrimSuffix(string(name), "\n")
}
