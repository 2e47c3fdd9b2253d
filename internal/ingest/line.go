// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/mend"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// line is a line of input: a record of the minimal profiler or of Inspector. Missing members are nil or empty.
type line struct {
	// Minimal profiler, see docs/export.md.
	RecordType string       `json:"recordType"`
	Type       string       `json:"type"`
	Func       string       `json:"func"`
	GPU        string       `json:"gpuUuid"`
	CommID     *json.Number `json:"commId"`
	Rank       *int32       `json:"rank"`
	Start      *stamp       `json:"start"`
	Stop       *stamp       `json:"stop"`
	PID        *int64       `json:"myPid"`
	Parent     address      `json:"parentObj"`
	Address    address      `json:"eventAddr"`
	PXN        boolean      `json:"isPxn"`
	Details    *details     `json:"details"`

	Time     micros  `json:"ts"`
	Name     string  `json:"name"`
	ID       *uint32 `json:"id"`
	StatePID *int64  `json:"pid"`
	TID      *int32  `json:"tid"`
	Size     *uint64 `json:"transSize"`
	Timer    *uint64 `json:"pTimer"`
	Appended *uint64 `json:"appendedProxyOps"`

	// Inspector, see inspector.go.
	Header   *inspectorHeader   `json:"header"`
	Metadata *inspectorMetadata `json:"metadata"`
	Coll     *inspectorColl     `json:"coll_perf"`
	P2P      *inspectorP2P      `json:"p2p_perf"`
	Stats    *inspectorStats    `json:"dump_stats"`
	Proxy    json.RawMessage    `json:"proxy_trace"`

	// accl-profiler, see accl.go: a collective without Inspector's frame, and the end of a file.
	Collective string          `json:"coll"`
	Summary    json.RawMessage `json:"summary"`

	// NCCL's example plugin, see example.go.
	Category string       `json:"cat"`
	Phase    string       `json:"ph"`
	Args     *exampleArgs `json:"args"`
}

// stamp is one end of an event.
type stamp struct {
	Time micros `json:"ts"`
	PID  *int64 `json:"pid"`
	TID  *int32 `json:"tid"`
}

// details are those of all event types. Those that the minimal profiler lacks are of our own export.
type details struct {
	Func        string  `json:"func"`
	Seq         *uint64 `json:"seq"`
	Algo        string  `json:"algo"`
	Proto       string  `json:"proto"`
	Channels    *uint8  `json:"channels"`
	Warps       *uint8  `json:"warps"`
	Count       *uint64 `json:"count"`
	Root        *int32  `json:"root"`
	Datatype    string  `json:"dtype"`
	SendBuff    address `json:"sendBuff"`
	RecvBuff    address `json:"recvBuff"`
	Buff        address `json:"buff"`
	ParentGroup address `json:"parentGroup"`
	Peer        *int32  `json:"peer"`
	Stream      address `json:"stream"`
	Captured    boolean `json:"graphCaptured"`
	Depth       *int32  `json:"depth"`
	Channel     *uint8  `json:"channel"`
	Steps       int32   `json:"steps"`
	ChunkSize   int32   `json:"chunkSize"`
	IsSend      boolean `json:"isSend"`
	EventPID    int32   `json:"eventPid"`
	Step        int32   `json:"step"`
	Timer       *uint64 `json:"pTimer"`
	NetID       int64   `json:"id"`
	Length      *uint64 `json:"length"` // this and the following: of NetPlugin, in our own export
	NetDevice   int32   `json:"device"`
	WrID        uint64  `json:"wrId"`
	Opcode      int32   `json:"opcode"`
	QP          int32   `json:"qp"`

	// of ProfilerInit
	Ranks     *int    `json:"nranks"`
	CommName  string  `json:"commName"`
	EventMask *uint32 `json:"eventMask"`

	Ordinal     *uint64           `json:"ordinal"`
	Source      string            `json:"timingSource"`
	Uncertainty *uint64           `json:"uncertaintyNs"`
	Plan        *uint64           `json:"plan"`
	Graph       boolean           `json:"graph"`
	Unfinished  boolean           `json:"unfinished"`
	Attributes  map[string]uint64 `json:"attributes"`
	UserTag     uint64            `json:"userTag"`
	Variant     string            `json:"kernelVariant"`
	Host        string            `json:"host"`
	Nodes       int               `json:"nnodes"`
	Device      *int              `json:"cudaDevice"`
	API         string            `json:"apiVersion"`
	WorldRank   *int              `json:"worldRank"`
	WorldSize   int               `json:"worldSize"`
	Epoch       micros            `json:"epoch"`
	Writer      string            `json:"source"`
	Incomplete  boolean           `json:"incomplete"`
	Lost        map[string]uint64 `json:"lost"` // by reason and type of event, as archives name them
	Oddities    map[string]uint64 `json:"oddities"`
	Network     map[string]uint64 `json:"network"`
}

// micros is a time that the input gives in microseconds with any number of decimals; it is kept in nanoseconds.
type micros struct {
	ns    int64
	known bool
}

// UnmarshalJSON reads the decimal digits, because a float64 has too few of them.
func (m *micros) UnmarshalJSON(b []byte) error {
	s := string(b)
	if s == "null" {
		return nil
	}
	whole, frac, _ := strings.Cut(s, ".")
	if strings.ContainsAny(s, "eE\"[{tf") || len(whole) > 16 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > 9e15 {
			return fmt.Errorf("%.40s is not a time in microseconds", s)
		}
		m.ns, m.known = int64(math.Round(v*1000)), true
		return nil
	}
	us, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || us > 9e15 || us < -9e15 {
		return fmt.Errorf("%.40s is not a time in microseconds", s)
	}
	n, err := strconv.ParseUint((frac + "000")[:3], 10, 16)
	if err != nil {
		return fmt.Errorf("%.40s is not a time in microseconds", s)
	}
	m.ns, m.known = us*1000, true
	if whole[0] == '-' {
		m.ns -= int64(n)
	} else {
		m.ns += int64(n)
	}
	return nil
}

// boolean is true or false, or C's number for it.
type boolean bool

// UnmarshalJSON reads true, false, numbers (0 is false), and null (false).
func (v *boolean) UnmarshalJSON(b []byte) error {
	switch text := string(b); text {
	case "true", "false":
		*v = text == "true"
	case "null":
	default:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%.40s is neither true nor false", text)
		}
		*v = n != 0
	}
	return nil
}

// address is a pointer, a string in hexadecimal; 0 stands for none.
type address uint64

// UnmarshalJSON reads "0x7f…", "null" and null.
func (a *address) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == "" || s == "null" || s == "(nil)" {
		return nil
	}
	digits, ok := strings.CutPrefix(s, "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("%.40q is not an address", s)
	}
	*a = address(v)
	return nil
}

// lineKind is the kind of a line.
type lineKind uint8

const (
	lineEvent lineKind = iota
	lineState
	lineInspector
	lineAccl
	lineExample
	lineOther // a record of a kind that is not used
)

// errNoKind says that a record is of no kind that is known.
var errNoKind = errors.New("no record of a kind that is known: see docs/export.md")

// kind returns the kind of a line, or an error that names the member that a record of its kind lacks.
func (l *line) kind() (lineKind, error) {
	switch {
	case l.Header != nil && l.Metadata != nil && (l.Coll != nil || l.P2P != nil || l.Stats != nil || l.Proxy != nil):
		return lineInspector, l.inspectable()
	case l.Header != nil && l.Metadata != nil:
		return lineOther, nil
	case l.Summary != nil || l.Collective != "" || l.Header != nil && l.Coll != nil:
		return lineAccl, nil
	case l.Category != "" && l.Phase != "":
		return lineExample, l.traceable()
	case l.RecordType == "state":
		if l.Address == 0 || !l.Time.known || l.ID == nil && l.Name == "" {
			return 0, errors.New("a state record without eventAddr, ts, or id and name")
		}
		return lineState, nil
	case l.RecordType == "event" || l.RecordType == "" && l.Type != "" && l.Start != nil:
		if l.Type == "" || l.Start == nil || l.Stop == nil || !l.Start.Time.known || !l.Stop.Time.known {
			return 0, errors.New("an event record without type, start.ts or stop.ts")
		}
		if l.Stop.Time.ns < l.Start.Time.ns {
			return 0, errors.New("an event that stops before it starts")
		}
		if l.Rank != nil && *l.Rank >= description.MaxRanks {
			return 0, fmt.Errorf("rank %d: communicators have at most %d ranks", *l.Rank, description.MaxRanks)
		}
		if d := l.Details; d != nil && d.Ranks != nil && *d.Ranks > description.MaxRanks {
			return 0, tooManyRanks(*d.Ranks)
		}
		return lineEvent, nil
	case l.RecordType != "":
		return lineOther, nil
	}
	return 0, errNoKind
}

// measure is a measured value of an operation with any decimals; it is unknown if the input has no number.
type measure struct {
	value float64
	known bool
}

// UnmarshalJSON reads numbers ≥ 0; anything else is unknown.
func (m *measure) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err == nil && v >= 0 {
		m.value, m.known = v, true
	}
	return nil
}

// whole is a number without decimals.
type whole uint64

// UnmarshalJSON reads whole numbers in any notation, also in quotes.
func (w *whole) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v < 0 || v >= 1<<53 || v != math.Trunc(v) {
			return fmt.Errorf("%.40s is no whole number", text)
		}
		n = uint64(v)
	}
	*w = whole(n)
	return nil
}

// decode reads a line. Missing quotes or commas, and numbers that JSON does not have, are mended.
func decode(text []byte, l any) error {
	err := json.Unmarshal(text, l)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && json.Unmarshal(mend.JSON(text), l) == nil {
		return nil
	}
	return err
}

// bom is the byte order mark that some editors and shells write.
var bom = []byte("\ufeff")

// eachLine calls f with each line of a file that is not empty, and its number, from 1. last reports that the line has
// no line end: it is the last one and may be incomplete.
func eachLine(path string, f func(number int, text []byte, last bool) error) error {
	file, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 256<<10)
	for number := 1; ; number++ {
		text, err := regular.Line(r)
		tooLong, last := errors.Is(err, regular.ErrTooLarge), errors.Is(err, io.EOF)
		if err != nil && !tooLong && !last {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if number == 1 {
			text = bytes.TrimPrefix(text, bom)
		}
		if text = bytes.TrimSpace(text); tooLong || len(text) > 0 {
			if err := f(number, text, last); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

func tooManyRanks(n int) error {
	return fmt.Errorf("a communicator of %d ranks: there are at most %d", n, description.MaxRanks)
}
