// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// openArchive opens an archive for as long as the test runs.
func openArchive(t testing.TB, anchor string) *otf2.Archive {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// archive is what the reference binding (python3-otf2) read from an archive, see reference/dump.py.
type archive struct {
	clockOffset uint64
	locations   map[uint64]*location
	groups      map[uint64]*locationGroup
	regions     map[uint64]string
	comms       map[uint64]*communicator
	events      map[uint64][]*event // by location, in order
	total       int
}

type location struct {
	ID     uint64
	Name   string
	Type   string
	Group  uint64
	Events int
}

type locationGroup struct {
	ID      uint64
	Name    string
	Type    string
	Creator *uint64
}

type communicator struct {
	ID      uint64
	Name    string
	Members []uint64 // location ids
}

type event struct {
	Event        string
	Location     uint64
	Time         uint64
	Region       uint64
	CollectiveOp string `json:"collective_op"`
	Communicator uint64
	Root         uint64
	SizeSent     uint64 `json:"size_sent"`
	SizeReceived uint64 `json:"size_received"`
	RequestID    uint64 `json:"request_id"`
	Receiver     uint64
	Sender       uint64
	MsgLength    uint64 `json:"msg_length"`
	Bytes        uint64
	Remote       uint64
	Attributes   map[string]json.RawMessage
}

func (e *event) text(name string) string {
	var s string
	if raw, ok := e.Attributes[name]; ok {
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

func (e *event) number(name string) int64 {
	raw, ok := e.Attributes[name]
	if !ok {
		return -1
	}
	var n int64
	if json.Unmarshal(raw, &n) != nil {
		return -2
	}
	return n
}

// handle is an id of NCCL's events; 0 where there is none.
type handle uint64

func (h handle) String() string { return fmt.Sprintf("%#x", uint64(h)) }

func (e *event) handle(name string) handle {
	var h handle
	if raw, ok := e.Attributes[name]; ok && json.Unmarshal(raw, &h) != nil {
		return ^handle(0)
	}
	return h
}

// otf2Print reads all of the archive with the reference tool; any warning is a failure.
func otf2Print(t *testing.T, anchor string) {
	t.Helper()
	cmd := exec.Command(need.Reference(t, "otf2-print"), "-A", "-Werror", anchor)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 || bytes.Contains(out, []byte("INVALID")) ||
		bytes.Contains(out, []byte("UNKNOWN <")) {
		t.Errorf("otf2-print -A -Werror %s: %v\n%s", anchor, err, tail(stderr.String()))
	}
}

// tail is the end of what a program says; with the beginning, where libotf2 says what is wrong before Python says
// where.
func tail(s string) string {
	const first, last = 12, 8
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > first+last {
		lines = slices.Concat(lines[:first], []string{"…"}, lines[len(lines)-last:])
	}
	return strings.Join(lines, "\n")
}

// dumper is a reference/dump.py that reads one archive after the other. It ends with this process, whose pipe it reads.
type dumper struct {
	archives io.Writer
	lines    *bufio.Reader
}

// dumpers are those that read nothing at the moment.
var dumpers struct {
	sync.Mutex
	idle []*dumper
}

func takeDumper(t *testing.T) *dumper {
	dumpers.Lock()
	defer dumpers.Unlock()
	if n := len(dumpers.idle); n > 0 {
		d := dumpers.idle[n-1]
		dumpers.idle = dumpers.idle[:n-1]
		return d
	}
	cmd := exec.Command(need.Python(t), "reference/dump.py")
	cmd.Stderr = os.Stderr
	in, out := testkit.Value(cmd.StdinPipe())(t), testkit.Value(cmd.StdoutPipe())(t)
	testkit.Must(t, cmd.Start())
	return &dumper{archives: in, lines: bufio.NewReader(out)}
}

// readArchive reads an archive to its end with python3-otf2.
func readArchive(t *testing.T, anchor string) *archive {
	t.Helper()
	d := takeDumper(t)
	testkit.Value(fmt.Fprintln(d.archives, anchor))(t)
	var out []byte
	for {
		line := testkit.Value(d.lines.ReadBytes('\n'))(t)
		if status, last := bytes.CutPrefix(line, []byte(`{"def": "read", "status": `)); last {
			testkit.Require(t, string(status) == "0}\n", "dump.py %s ends with status %s", anchor, status)
			break
		}
		out = append(out, line...)
	}
	dumpers.Lock()
	dumpers.idle = append(dumpers.idle, d)
	dumpers.Unlock()
	return testkit.Value(parseDump(out))(t)
}

func parseDump(out []byte) (*archive, error) {
	a := &archive{
		locations: make(map[uint64]*location), groups: make(map[uint64]*locationGroup),
		regions: make(map[uint64]string), comms: make(map[uint64]*communicator), events: make(map[uint64][]*event),
	}
	ended := false
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<22)
	for sc.Scan() {
		line := sc.Bytes()
		var kind struct {
			Def  string
			ID   uint64
			Name string
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return nil, fmt.Errorf("dump.py: %w: %s", err, line)
		}
		var err error
		switch kind.Def {
		case "":
			e := &event{}
			err = json.Unmarshal(line, e)
			a.events[e.Location] = append(a.events[e.Location], e)
			a.total++
		case "clock":
			var c struct{ Offset uint64 }
			err = json.Unmarshal(line, &c)
			a.clockOffset = c.Offset
		case "location":
			l := &location{}
			err = json.Unmarshal(line, l)
			a.locations[l.ID] = l
		case "location_group":
			g := &locationGroup{}
			err = json.Unmarshal(line, g)
			a.groups[g.ID] = g
		case "region":
			a.regions[kind.ID] = kind.Name
		case "comm":
			c := &communicator{}
			err = json.Unmarshal(line, c)
			a.comms[c.ID] = c
		case "end":
			ended = true
		}
		if err != nil {
			return nil, fmt.Errorf("dump.py: %w: %s", err, line)
		}
	}
	if !ended {
		return nil, fmt.Errorf("dump.py did not reach the end: %v", sc.Err())
	}
	return a, nil
}

// functionOf names NCCL's function by the collective operation of OTF2.
var functionOf = map[string]string{
	"ALLREDUCE": "AllReduce", "BCAST": "Broadcast", "REDUCE": "Reduce", "ALLGATHER": "AllGather",
	"REDUCE_SCATTER_BLOCK": "ReduceScatter", "ALLTOALL": "AlltoAll", "GATHER": "Gather", "SCATTER": "Scatter",
}

// rootNone is OTF2_COLLECTIVE_ROOT_NONE.
const rootNone = 1<<32 - 1

// operations collects what the location of one communicator member shows, in order.
func (a *archive) operations(loc uint64) (map[string][]*operation, error) {
	out := make(map[string][]*operation)
	var enter *event
	regions := 0
	depth := 0 // of regions inside that of the plan: phases of its kernel
	var open []*operation
	byRequest := make(map[uint64]*operation)
	described := func(o *operation, e *event) *operation {
		o.Count, o.Datatype = uint64(e.number("COUNT")), e.text("DATATYPE")
		o.Seq, o.Algo, o.Proto = e.number("SEQ"), e.text("ALGO"), e.text("PROTO")
		o.ordinal = e.number("ORDINAL")
		o.region = regions
		o.begin, o.source, o.uncertainty = enter.Time, enter.text("TIMING_SOURCE"), enter.number("UNCERTAINTY")
		o.realigned = enter.number("REALIGNED")
		o.id, o.plan = e.handle("EVENT_ID"), enter.handle("PLAN_ID")
		o.send, o.recv = e.text("SENDBUFF_CLASS"), e.text("RECVBUFF_CLASS")
		open = append(open, o)
		return o
	}
	own := func(e *event) *event { // a plan of one operation carries its attributes at the region
		if _, ok := e.Attributes["COUNT"]; ok {
			return e
		}
		return enter
	}
	var collective *operation
	for _, e := range a.events[loc] {
		if e.Event == "Metric" {
			continue
		}
		if enter == nil && e.Event != "Enter" && e.Event != "CommCreate" && e.Event != "CommDestroy" &&
			e.Event != "MeasurementOnOff" {
			return nil, fmt.Errorf("%s outside any region at %d", e.Event, e.Time)
		}
		finish := func(o *operation) {
			o.Name = functionOf[strings.TrimPrefix(e.CollectiveOp, "CollectiveOp.")]
			o.Root, o.Sent, o.Received = int64(e.Root), e.SizeSent, e.SizeReceived
			if e.Root == rootNone {
				o.Root = -1
			}
		}
		switch e.Event {
		case "Enter":
			if depth++; depth == 1 {
				enter, open = e, nil
				regions++
			}
		case "Leave":
			if depth--; depth > 0 {
				continue
			}
			for _, o := range open {
				o.end = e.Time
				out[o.sequenceKey()] = append(out[o.sequenceKey()], o)
			}
			enter = nil
		case "MpiCollectiveBegin":
			collective = described(&operation{}, own(e))
		case "MpiCollectiveEnd":
			finish(collective)
		case "NonBlockingCollectiveRequest":
			byRequest[e.RequestID] = described(&operation{}, own(e))
		case "NonBlockingCollectiveComplete":
			finish(byRequest[e.RequestID])
		case "MpiIsend":
			described(&operation{Name: "Send", Root: int64(e.Receiver), Sent: e.MsgLength}, own(e))
		case "MpiIrecvRequest":
			byRequest[e.RequestID] = described(&operation{Name: "Recv"}, own(e))
		case "MpiIrecv":
			o := byRequest[e.RequestID]
			o.Root, o.Received = int64(e.Sender), e.MsgLength
		}
	}
	return out, nil
}
