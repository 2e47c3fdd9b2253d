// SPDX-License-Identifier: Apache-2.0

package otf2print_test

import (
	"bytes"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

// printer is a reference tool.
type printer struct {
	path string
	v    otf2.Version // what it knows
}

// printers are that of this machine's release, and that of OTF2 3.2.
func printers(t *testing.T) []printer {
	t.Helper()
	return []printer{{need.Reference(t, "otf2-print"), 0x0300}, {need.Tool(t, "otf2-3.2/otf2-print"), 0x0302}}
}

// printed is what a tool prints; it must have nothing to say beside.
func (p printer) printed(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(p.path, args...)
	cmd.Env = append(cmd.Environ(), "TZ=UTC")
	out := testkit.Output(t, cmd)
	return string(out)
}

// greatest is the greatest value that a field can hold, and the undefined one of most.
func greatest(f *otf2.Field) uint64 {
	switch f.Encoding {
	case otf2.EncodingU8:
		return math.MaxUint8
	case otf2.EncodingC32:
		return math.MaxUint32
	case otf2.EncodingS64:
		return math.MaxInt64
	}
	return math.MaxUint64
}

// Numbers at their ends: of every event that both tools know, each field that is a plain number is 0, 1, the greatest
// and the one before, and, where it has a sign, the least. The text is that of either tool.
func TestTextOfExtremeNumbers(t *testing.T) {
	for _, p := range printers(t) {
		dir := t.TempDir()
		w := testkit.Value(otf2.Create(dir, "traces", nil))(t)
		d := w.Definitions()
		testkit.Must(t, d.ClockProperties(1_000_000_000, 0, 1_000_000, 0))
		testkit.Must(t, d.String(0, "x"))
		testkit.Must(t, d.SystemTreeNode(0, 0, 0, otf2.UndefinedSystemTreeNode))
		testkit.Must(t, d.LocationGroup(0, 0, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
		testkit.Must(t, d.Location(0, 0, otf2.LocationTypeCPUThread, 0, 0))
		ew := testkit.Value(w.Events(0))(t)
		now := otf2.Timestamp(1)
		for id := range 256 {
			k := otf2.EventKind(id)
			if !k.Known() || k.Since() > p.v || k == otf2.EventMetric || k == otf2.EventProgramBegin {
				continue
			}
			fields := k.Fields()
			args := make([]uint64, len(fields))
			for at := range fields {
				f := &fields[at]
				if f.Type != "" || f.Encoding == otf2.EncodingU8 {
					continue
				}
				values := []uint64{0, 1, greatest(f) - 1, greatest(f)}
				if f.Encoding == otf2.EncodingS64 {
					least := int64(math.MinInt64)
					values = append(values, uint64(least), ^uint64(0))
				}
				for _, v := range values {
					clear(args)
					args[at] = v
					testkit.Must(t, ew.Write(k, now, nil, args))
					now++
				}
			}
		}
		testkit.Must(t, ew.Close())
		testkit.Must(t, w.Close())
		path := filepath.Join(dir, "traces.otf2")
		a := testkit.Value(otf2.Open(path, nil))(t)
		golden.SameLines(t, p.v.String(), eventsText(t, a, &otf2print.Options{As: p.v}), p.printed(t, path))
		testkit.Must(t, a.Close())
	}
}

// Groups of global members: 3.2 names other locations than 3.0.
func TestTextOfGlobalMembers(t *testing.T) {
	for _, p := range printers(t) {
		dir := t.TempDir()
		w := testkit.Value(otf2.Create(dir, "traces", nil))(t)
		d := w.Definitions()
		testkit.Must(t, d.ClockProperties(1_000_000_000, 0, 1_000_000, 0))
		testkit.Must(t, d.String(0, "x"))
		testkit.Must(t, d.SystemTreeNode(0, 0, 0, otf2.UndefinedSystemTreeNode))
		testkit.Must(t, d.LocationGroup(0, 0, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
		for l := range otf2.LocationRef(3) {
			testkit.Must(t, d.Location(l, 0, otf2.LocationTypeCPUThread, 0, 0))
		}
		testkit.Must(t, d.Group(0, 0, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, otf2.GroupFlagNone,
			[]uint64{2, 0, 1}))
		testkit.Must(t, d.Group(1, 0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, otf2.GroupFlagGlobalMembers,
			[]uint64{2, 0}))
		testkit.Must(t, d.Group(2, 0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, otf2.GroupFlagNone, []uint64{2, 0}))
		testkit.Must(t, d.Comm(0, 0, 1, otf2.UndefinedComm, otf2.CommFlagNone))
		testkit.Must(t, d.Comm(1, 0, 2, otf2.UndefinedComm, otf2.CommFlagNone))
		for l := range otf2.LocationRef(3) {
			ew := testkit.Value(w.Events(l))(t)
			if l != 1 {
				for comm := range otf2.CommRef(2) {
					testkit.Must(t, ew.MpiSend(10, nil, 1, comm, 0, 8))
					testkit.Must(t, ew.MpiSend(10, nil, 0, comm, 0, 8))
				}
			}
			testkit.Must(t, ew.Close())
		}
		testkit.Must(t, w.Close())
		path := filepath.Join(dir, "traces.otf2")
		a := testkit.Value(otf2.Open(path, nil))(t)
		var b bytes.Buffer
		b.WriteString(otf2print.Title)
		testkit.Must(t, otf2print.Definitions(&b, a, &otf2print.Options{As: p.v, Zone: time.UTC}))
		name := p.v.String()
		golden.SameLines(t, name+" definitions", b.String(), p.printed(t, "-G", path))
		golden.SameLines(t, name+" events", eventsText(t, a, &otf2print.Options{As: p.v}), p.printed(t, path))
		testkit.Must(t, a.Close())
	}
}

// The reference archives in the form of 3.2.
func TestTextOfReferenceArchivesAs32(t *testing.T) {
	p := printers(t)[1]
	anchors, err := filepath.Glob("../testdata/*/*.otf2")
	testkit.Require(t, err == nil && len(anchors) == 11, "%d archives, want 11 (%v)", len(anchors), err)
	for _, path := range anchors {
		a := testkit.Value(otf2.Open(path, nil))(t)
		var b bytes.Buffer
		b.WriteString(otf2print.Title)
		testkit.Must(t, otf2print.Definitions(&b, a, &otf2print.Options{As: p.v, Zone: time.UTC}))
		golden.SameLines(t, path+" definitions", b.String(), p.printed(t, "-G", path))
		golden.SameLines(t, path+" events", eventsText(t, a, &otf2print.Options{As: p.v}), p.printed(t, path))
		testkit.Must(t, a.Close())
	}
}
