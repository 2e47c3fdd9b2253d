// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// version is the schema version of aggregates on disk. A reader refuses other versions.
const version = 2

// Aggregate is the result of an Aggregator. Times are nanoseconds.
type Aggregate struct {
	Version int    `json:"version"`
	Nodes   []Node `json:"nodes"` // parents before their children
	Rows    []Row  `json:"rows"`  // by location
	// Taken identifies the last record of the process that a collector has summed up, in the collector's format.
	Taken string `json:"takenRecords,omitempty"`
	// Folded counts names that got no node of their own because there were too many.
	Folded uint64 `json:"folded,omitempty"`
}

// Row is the values of one location.
type Row struct {
	Location uint64                   `json:"location"` // id, or number in the process
	Kind     description.LocationKind `json:"kind"`
	Ranks    int                      `json:"ranks,omitempty"` // of its communicator
	Rank     int                      `json:"rank,omitempty"`  // in it
	First    uint64                   `json:"first"`           // time of the first event
	Last     uint64                   `json:"last"`
	Ended    bool                     `json:"ended,omitempty"` // its communicator has been destroyed
	// Others is the number of further locations, of destroyed communicators, whose values are in this row.
	Others uint64   `json:"others,omitempty"`
	Cells  []CellAt `json:"cells"` // by node
	Stats  []Stats  `json:"stats,omitempty"`
	// Strata are samples of the collectives, and FirstSample is the very first collective; nil if none are kept.
	Strata      []Stratum    `json:"strata,omitempty"`
	FirstSample *FirstSample `json:"firstSample,omitempty"`
}

// RankRow is the row of one location of a job.
type RankRow struct {
	Location otf2.LocationRef
	Nodes    []Node // the nodes that cells refer to
	*Row
	Caused float64 // ns that others waited for it, where that is estimated
}

// CellAt is a cell and its node, an index into Aggregate.Nodes.
type CellAt struct {
	Node int32 `json:"node"`
	Cell
}

// Cell is the values of one call path at one location, without the call paths below it.
type Cell struct {
	Visits     uint64 `json:"visits,omitempty"`
	Unfinished uint64 `json:"unfinished,omitempty"` // of the visits; their times end with the data
	Time       uint64 `json:"time,omitempty"`       // ns, without call paths below
	Max        uint64 `json:"max,omitempty"`        // longest visit that ended, ns, with call paths below
	// bytes, as Score-P counts them for the MPI operation of the name
	Sent     uint64      `json:"sent,omitempty"`
	Received uint64      `json:"received,omitempty"`
	Put      uint64      `json:"put,omitempty"`   // bytes of transfers over the network
	Speeds   Speeds      `json:"speeds,omitzero"` // of operations with a bandwidth
	Waits    WaitsByKind `json:"waits,omitzero"`
}

// WaitStartUp is the row of waits in a communicator's first collective, when processes start up; they count separately
// from the waits by the causes of package facts.
const (
	WaitStartUp  = lateness.NumWaitKinds
	NumWaitKinds = WaitStartUp + 1
)

// WaitsByKind is waiting time by cause, ns. It is part of the time of the same cell.
type WaitsByKind [NumWaitKinds]uint64

// Total returns the sum over all causes.
func (w *WaitsByKind) Total() (sum uint64) {
	for _, ns := range w {
		sum += ns
	}
	return sum
}

// LimitWaits limits estimated waits to the cell's time, which they can exceed by chance.
func (c *Cell) LimitWaits() {
	total := c.Waits.Total()
	if total <= c.Time {
		return
	}
	for k, ns := range c.Waits {
		c.Waits[k] = uint64(float64(c.Time) * float64(ns) / float64(total))
	}
}

// visit counts one visit of a region: its duration took, of which inside belongs to regions inside.
func (c *Cell) visit(took, inside uint64, unfinished bool) {
	c.Visits++
	c.Time += took - min(inside, took)
	if unfinished {
		c.Unfinished++
		return
	}
	c.Max = max(c.Max, took)
}

// Add adds another cell of the same call path.
func (c *Cell) Add(o *Cell) {
	c.Max = max(c.Max, o.Max)
	c.Visits += o.Visits
	c.Unfinished += o.Unfinished
	c.Time += o.Time
	c.Sent += o.Sent
	c.Received += o.Received
	c.Put += o.Put
	c.Speeds.Merge(&o.Speeds)
	for k, ns := range o.Waits {
		c.Waits[k] += ns
	}
}

// Histogram has the values of members, in classes: it is merged between ranks and kept on disk.
type Histogram = stats.Distribution[uint64]

// Stats are the operations of one function on one location.
type Stats struct {
	Function string `json:"function"` // or "Group" for launches of several
	Source   string `json:"source"`   // of the times: "gpu", "network", "enqueue", or "" if not stated
	Grouped  bool   `json:"grouped,omitempty"`
	// Time has the durations; empty for operations that were launched together with others.
	Time   Histogram `json:"time"`
	Size   Histogram `json:"size"` // as nccl-tests counts sizes
	Speeds Speeds    `json:"speeds,omitzero"`
}

// Merge adds the same operations of another location.
func (s *Stats) Merge(o *Stats) {
	s.Time.Merge(&o.Time)
	s.Size.Merge(&o.Size)
	s.Speeds.Merge(&o.Speeds)
}

// Write writes the aggregate.
func (a *Aggregate) Write(w io.Writer) error { return json.NewEncoder(w).Encode(a) }

// Open reads an aggregate from a file of an experiment directory.
func Open(path string) (*Aggregate, error) {
	text, err := regular.ReadOwn(path, experiment.MaxDescription)
	if err != nil {
		return nil, err
	}
	a, err := Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// OpenShard reads the aggregate of a shard's folder. If it cannot be read, as after a power failure, OpenShard returns
// an earlier one, if there is one, and the reason in instead; otherwise err is the error of the first.
func OpenShard(path string) (a *Aggregate, instead, err error) {
	a, err = Open(experiment.ProfileFile(path))
	if err == nil {
		return a, nil, nil
	}
	if earlier, lost := Open(experiment.DurableProfile(path)); lost == nil {
		return earlier, err, nil
	}
	return nil, nil, err
}

// Read reads an aggregate and checks its references.
func Read(r io.Reader) (*Aggregate, error) {
	a := new(Aggregate)
	if err := json.NewDecoder(r).Decode(a); err != nil {
		return nil, err
	}
	if a.Version != version {
		return nil, fmt.Errorf("version %d, this program reads %d", a.Version, version)
	}
	for i, n := range a.Nodes {
		if n.Parent < None || int(n.Parent) >= i {
			return nil, fmt.Errorf("node %d has parent %d", i, n.Parent)
		}
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		for _, c := range r.Cells {
			if c.Node < 0 || int(c.Node) >= len(a.Nodes) {
				return nil, errors.New("a value belongs to no node")
			}
		}
	}
	return a, nil
}
