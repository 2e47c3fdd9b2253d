// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Status is the status of one process's recording.
type Status struct {
	Shard string    `json:"shard"` // its uuid
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Rank  int       `json:"rank"` // rank by the launcher; −1: unknown
	Time  time.Time `json:"time"`
	Ask   uint64    `json:"ask"`   // number of the request that this answers
	Order uint64    `json:"order"` // number of the last order obeyed; 0: none
	// Late counts the communicators that had already passed the operation at which the last order takes effect: for
	// them, recording starts or ends at another operation than for other members.
	Late int           `json:"late"`
	Poll time.Duration `json:"pollNs"` // interval at which the collector checks for orders

	Mode     string   `json:"mode"`              // "trace" or "record"
	Asked    []string `json:"asked"`             // event types that NCCL was asked for
	Recorded []string `json:"recorded"`          // those of them that are recorded
	Stopped  string   `json:"stopped,omitempty"` // why nothing is recorded any more

	Records     uint64            `json:"records"` // taken so far
	Lost        map[string]uint64 `json:"lost"`    // by reason
	Paused      uint64            `json:"paused"`  // events outside windows
	MemoryUsed  uint64            `json:"memoryUsed"`
	MemoryTotal uint64            `json:"memoryTotal"`
	// bytes that are put off: what they say is not in the shard
	Backlog   uint64 `json:"backlog,omitempty"`
	DiskUsed  uint64 `json:"diskUsed"`
	DiskLimit uint64 `json:"diskLimit"` // 0: none

	Comms []CommStatus `json:"comms"` // alive
}

// CommStatus is how far a communicator rank is.
type CommStatus struct {
	Index       int    `json:"index"`
	ID          uint64 `json:"id,string"` // 0 if unknown
	Name        string `json:"name"`
	NRanks      int    `json:"nranks"`
	Rank        int    `json:"rank"`
	Collectives uint64 `json:"collectives"` // called so far
	Messages    uint64 `json:"messages"`    // called so far
	Replayed    uint64 `json:"replayed"`    // operations of replayed graphs so far
	First       uint64 `json:"first,string"`
	Last        uint64 `json:"last,string"` // operations first ≤ ordinal < last are recorded
}

// Window is the one in force.
func (c *CommStatus) Window() shm.Window { return shm.Window{First: c.First, Last: c.Last} }

// Ordinal is the number of its next operation, in the count that windows go by.
func (c *CommStatus) Ordinal() uint64 { return Ordinal(c.Collectives, c.Messages, c.Replayed) }

// Recording reports whether its next operation is recorded.
func (c *CommStatus) Recording() bool { return inside(c.Window(), c.Ordinal()) }

// Recording reports whether anything is recorded in the process at the moment: on all its communicators, on some
// of them, or on none.
func (s *Status) Recording() (all, some bool) {
	if s.Stopped != "" || len(s.Recorded) == 0 {
		return false, false
	}
	all = true
	for i := range s.Comms {
		r := s.Comms[i].Recording()
		all, some = all && r, some || r
	}
	return all, some || len(s.Comms) == 0
}

// EventNames are the names of event types (bits), in their order.
func EventNames(mask uint32) []string {
	names := []string{}
	for t := range shm.TypeCount {
		if mask&(1<<t) != 0 {
			names = append(names, shm.EventType(t).String())
		}
	}
	return names
}

// Write puts an answer where Controllers look for it.
func (s *Status) Write(shardPath string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(shardPath, StatusFile), experiment.FileMode, append(text, '\n'),
		atomicfile.Volatile)
}

// ReadStatus reads what a collector has published; nil if it has not.
func ReadStatus(shardPath string) (*Status, error) {
	text, err := regular.ReadOwn(filepath.Join(shardPath, StatusFile), experiment.MaxDescription)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	s := new(Status)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(shardPath, StatusFile), err)
	}
	return s, nil
}
