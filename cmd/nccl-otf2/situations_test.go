// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// foreign is an archive of another tool in the making. String 0 is empty.
type foreign struct {
	testing.TB
	*otf2.ArchiveWriter
	defs    *otf2.GlobalDefWriter
	next    otf2.StringRef
	offsets []otf2.ClockOffset // of location 0
}

func (f *foreign) must(errs ...error) {
	f.Helper()
	testkit.Must(f, errors.Join(errs...))
}

func (f *foreign) text(s string) otf2.StringRef {
	f.must(f.defs.String(f.next, s))
	f.next++
	return f.next - 1
}

func (f *foreign) clock(resolution, offset, length uint64) {
	f.must(f.defs.ClockProperties(resolution, offset, length, 1_606_000_000_000_000_000))
}

func (f *foreign) host() {
	f.must(f.defs.SystemTreeNode(0, f.text("host"), f.text("node"), otf2.UndefinedSystemTreeNode))
}

func (f *foreign) process(id otf2.LocationGroupRef) {
	f.must(f.defs.LocationGroup(id, f.text("process"), otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
}

func (f *foreign) location(id otf2.LocationRef, events uint64, of otf2.LocationGroupRef) *otf2.EventWriter {
	f.must(f.defs.Location(id, f.text("thread"), otf2.LocationTypeCPUThread, events, of))
	w, err := f.Events(id)
	f.must(err)
	return w
}

func (f *foreign) region(id otf2.RegionRef, name string) {
	f.must(f.defs.Region(id, f.text(name), f.next-1, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0,
		otf2.UndefinedString, 0, 0))
}

// plain is a thread that runs region 0 ten times.
func (f *foreign) plain(at otf2.Timestamp) {
	f.host()
	f.process(0)
	f.region(0, "f")
	w := f.location(0, 20, 0)
	for i := range otf2.Timestamp(10) {
		f.must(w.Enter(at+1000*i, nil, 0), w.Leave(at+1000*i+500, nil, 0))
	}
}

// situations are archives as other tools leave them, or as nobody should. empty: there is nothing in them.
var situations = []struct {
	name  string
	empty bool
	make  func(f *foreign)
}{
	{"regions overlap", false, func(f *foreign) {
		f.clock(1e9, 0, 30000)
		f.host()
		f.process(0)
		f.region(0, "a")
		f.region(1, "b")
		w := f.location(0, 80, 0)
		for i := range otf2.Timestamp(20) {
			f.must(w.Enter(1000*i+70, nil, 0), w.Enter(1000*i+80, nil, 1), w.Leave(1000*i+300, nil, 0),
				w.Leave(1000*i+400, nil, 1))
		}
	}},
	{"a leave comes before its enter", false, func(f *foreign) {
		f.clock(1e9, 0, 30000)
		f.host()
		f.process(0)
		f.region(0, "f")
		w := f.location(0, 40, 0)
		for i := range otf2.Timestamp(20) {
			f.must(w.Leave(1000*i+5, nil, 0), w.Enter(1000*i+5, nil, 0))
		}
	}},
	{"times near the end of what 64 bits hold", false, func(f *foreign) {
		f.clock(1e9, math.MaxUint64-100_000, 20000)
		f.plain(math.MaxUint64 - 100_000)
	}},
	{"one region of all the time that there is", false, func(f *foreign) {
		f.clock(1e9, 0, math.MaxUint64)
		f.host()
		f.process(0)
		f.region(0, "f")
		w := f.location(0, 2, 0)
		f.must(w.Enter(5, nil, 0), w.Leave(math.MaxUint64-1, nil, 0))
	}},
	{"a clock without resolution", false, func(f *foreign) { f.clock(0, 0, 20000); f.plain(1000) }},
	{"a clock of one tick per second", false, func(f *foreign) { f.clock(1, 0, 20000); f.plain(1000) }},
	{"a clock of an odd resolution", false, func(f *foreign) { f.clock(1_995_386_627, 0, 20000); f.plain(1000) }},
	{"a clock of the greatest resolution", false,
		func(f *foreign) { f.clock(math.MaxUint64, 0, 20000); f.plain(1000) }},
	{"two clocks", false, func(f *foreign) { f.clock(1e9, 0, 20000); f.clock(1000, 5, 20000); f.plain(1000) }},
	{"ids of the greatest numbers", false, func(f *foreign) {
		f.clock(1e9, 0, 20000)
		f.host()
		f.process(math.MaxUint32 - 1)
		f.region(math.MaxUint32-1, "f")
		for _, l := range []otf2.LocationRef{math.MaxUint64 - 1, 7<<32 + 3, math.MaxUint32} {
			w := f.location(l, 2, math.MaxUint32-1)
			f.must(w.Enter(1000, nil, math.MaxUint32-1), w.Leave(1500, nil, math.MaxUint32-1))
		}
	}},
	{"nothing but a location is defined", false, func(f *foreign) {
		w := f.location(0, 4, 0)
		f.must(w.Enter(1, nil, 0), w.Leave(2, nil, 0), w.Enter(3, nil, 7), w.Leave(4, nil, 7))
	}},
	{"a location of no process", false, func(f *foreign) {
		f.clock(1e9, 0, 20000)
		f.region(0, "f")
		w := f.location(0, 2, 77)
		f.must(w.Enter(1000, nil, 0), w.Leave(2000, nil, 0))
	}},
	{"hosts and groups in a circle", false, func(f *foreign) {
		f.clock(1e9, 0, 20000)
		f.must(f.defs.SystemTreeNode(0, f.text("a"), f.text("node"), 1),
			f.defs.SystemTreeNode(1, f.text("b"), f.text("node"), 0))
		f.process(0)
		f.must(f.defs.LocationGroup(1, 0, otf2.LocationGroupTypeAccelerator, 0, 2),
			f.defs.LocationGroup(2, 0, otf2.LocationGroupTypeAccelerator, 0, 1))
		f.region(0, "f")
		w := f.location(0, 2, 2)
		f.must(w.Enter(1000, nil, 0), w.Leave(2000, nil, 0))
	}},
	{"calls in a circle", true, func(f *foreign) {
		f.clock(1e9, 0, 20000)
		f.host()
		f.process(0)
		f.region(0, "f")
		f.must(f.defs.CallingContext(0, 0, otf2.UndefinedSourceCodeLocation, 1),
			f.defs.CallingContext(1, 0, otf2.UndefinedSourceCodeLocation, 0),
			f.defs.InterruptGenerator(0, 0, otf2.InterruptGeneratorModeTime, otf2.BaseDecimal, 0, 1))
		w := f.location(0, 5, 0)
		for i := range otf2.Timestamp(5) {
			f.must(w.CallingContextSample(1000+i, nil, otf2.CallingContextRef(i%2), 2, 0))
		}
	}},
	{"very deep calls that never end", false, func(f *foreign) {
		f.clock(1e9, 0, 40000)
		f.host()
		f.process(0)
		f.region(0, "f")
		w := f.location(0, 30000, 0)
		for i := range otf2.Timestamp(30000) {
			f.must(w.Enter(1000+i, nil, 0))
		}
	}},
	{"clocks that are corrected to before time 0", false, func(f *foreign) {
		f.clock(1e9, 0, 20000)
		f.plain(1000)
		f.offsets = []otf2.ClockOffset{{Time: 1000, Offset: -5000}, {Time: 11000, Offset: -5000}}
	}},
	{"no events", true, func(f *foreign) { f.clock(1e9, 0, 0); f.host(); f.process(0); f.location(0, 0, 0) }},
	{"no locations", true, func(f *foreign) { f.clock(1e9, 0, 0); f.host() }},
}

// Whatever another tool's archive is like, each command says something of it in words or in one line of error, and no
// page or view is made of nothing. What is printed is what the reference tool prints.
func TestForeignSituations(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			w := testkit.Value(otf2.Create(dir, "traces", &otf2.ArchiveOptions{Creator: "test"}))(t)
			f := &foreign{TB: t, ArchiveWriter: w, defs: w.Definitions()}
			f.text("")
			s.make(f)
			testkit.Must(t, w.Close())
			if f.offsets != nil {
				testkit.Must(t, otf2.WriteLocalDefs(filepath.Join(dir, "traces", "0.def"), nil, f.offsets, 0))
			}
			for _, line := range []string{"report", "report --tally", "report --matrix", "report --overlap",
				"report --html", "timeline", "profile", "export --perfetto",
				"export --jsonl", "export --parquet", "export --prometheus", "export --chakra",
				"export --program", "check", "view --simple", "view --scalasca", "recover -n"} {
				out, err := func() (string, error) {
					cmd := rootCommand()
					var out bytes.Buffer
					cmd.SetOut(&out)
					cmd.SetArgs(append(strings.Fields(line), dir))
					err := cmd.Execute()
					return out.String(), err
				}()
				testkit.Check(t, err == nil || errors.As(err, new(exitCode)) || !strings.Contains(err.Error(), "\n") &&
					!strings.Contains(err.Error(), "invalid argument") && !strings.Contains(out, "goroutine"),
					"%s: %v\n%s", line, err, out)
				testkit.Check(t, err != nil || !s.empty || line != "timeline" &&
					(line != "export --jsonl" || strings.Contains(s.name, "calls")),
					"%s: an answer, and nothing is there", line)
			}
			if s.name == "regions overlap" {
				out, err := outputOf(reportCommand(), "--tally", "--format", "csv", dir)
				testkit.Check(t, err == nil && strings.Contains(out, "b,") &&
					strings.Contains(out, fmt.Sprint(20*320)) && strings.Contains(out, fmt.Sprint(20*230)),
					"tally: %v\n%s", err, out)
			}
			reference := need.Reference(t, "otf2-print")
			want, wantErr := exec.Command(reference, filepath.Join(dir, "traces.otf2")).Output()
			got, err := outputOf(printCommand(), filepath.Join(dir, "traces.otf2"))
			testkit.Check(t, (err == nil) == (wantErr == nil) && got == string(want),
				"printed: %v, %v\n%.600s\nwant\n%.600s", err, wantErr, got, want)
		})
	}
}
