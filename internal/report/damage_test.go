// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// analyze makes everything that can be made of an archive, and writes it in all forms. What is damaged may be named as
// an error or a problem, or count as an event like any other; nothing may panic.
func analyze(t testing.TB, path string) {
	t.Helper()
	_, _ = check.Archive(path, nil)
	a, err := otf2.Open(path, nil)
	if a == nil {
		testkit.Require(t, err != nil, "neither archive nor error")
		return
	}
	defer a.Close()
	var documents []*Document
	var objects []any
	if r, err := operations.Observe(a, new(operations.Observer)); err == nil {
		err := cmp.Or(WriteStyled(r, io.Discard, Style{}), WriteHTML(r, io.Discard, HTML{}))
		testkit.Check(t, err == nil, "%v", err)
		documents = append(documents, Operations(r), Waits(r.WaitStates, Clock{}))
		r.BySizeClass()
		documents = append(documents, Operations(r))
		objects = append(objects, r, r.WaitStates)
	}
	matrix, tally, overlap := matrix.Read(a, nil), tally.Read(a, nil), overlap.Read(a, nil)
	documents = append(documents, Matrix(matrix), Tally(tally), Overlap(overlap))
	compared := compare.Runs(a, a, compare.Options{})
	documents, objects = append(documents, Comparison(compared, 0.05)), append(objects, compared)
	objects = append(objects, matrix, tally, overlap)
	err = WriteRecordingText(selfreport.Read(a), io.Discard)
	testkit.Check(t, err == nil, "%v", err)
	for _, d := range documents {
		for _, write := range []func(io.Writer) error{d.WriteText, d.WriteCSV, d.WriteMarkdown} {
			err := write(io.Discard)
			testkit.Check(t, err == nil, "%v", err)
		}
	}
	for _, o := range objects {
		_, err := json.Marshal(o)
		testkit.Check(t, err == nil, "%v", err)
	}
}

// archives are those that are damaged: together they have all that analyzes look at.
func archives(t testing.TB) []string {
	t.Helper()
	return []string{jobtest.WithWaits(t), jobtest.WithNetwork(t), jobtest.WithKernels(t)}
}

func TestTruncatedArchives(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range archives(t) {
		all := otf2test.ReadFiles(t, path)
		for _, name := range all.Names() {
			b := all.Content(name)
			for range 4 {
				analyze(t, all.With(t, name, b[:random.IntN(len(b)+1)]))
			}
		}
	}
}

// Values of all sizes where others should be: references to what is not there, times that go backwards, counts that
// cannot be.
func TestWrongValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	value := func() uint64 {
		switch random.IntN(4) {
		case 0:
			return random.Uint64N(8)
		case 1:
			return random.Uint64() >> random.IntN(64)
		case 2:
			return ^uint64(0) >> (32 * random.IntN(2))
		}
		return random.Uint64N(1 << 33)
	}
	for _, path := range archives(t) {
		for range 60 {
			s := jobtest.Load(t, path)
			for range 1 + random.IntN(6) {
				loc := s.Defs.Locations[random.IntN(len(s.Defs.Locations))].Self
				events := s.Events[loc]
				if len(events) == 0 {
					continue
				}
				ev := &events[random.IntN(len(events))]
				switch random.IntN(6) {
				case 0:
					if len(ev.Attributes) > 0 {
						ev.Attributes[random.IntN(len(ev.Attributes))].Bits = value() & 0xffff_ffff
					}
				case 1:
					s.Remove(loc, random.IntN(len(events)), 1)
				case 2:
					g := &s.Defs.Groups[random.IntN(len(s.Defs.Groups))]
					if len(g.Members) > 0 {
						g.Members = slices.Clone(g.Members)
						g.Members[random.IntN(len(g.Members))] = value()
					}
				case 3:
					l := &s.Defs.Locations[random.IntN(len(s.Defs.Locations))]
					l.Group = otf2.LocationGroupRef(value())
				case 4:
					c := &s.Defs.Comms[random.IntN(len(s.Defs.Comms))]
					c.Group, c.Parent = otf2.GroupRef(value()), otf2.CommRef(value())
				default:
					if n := len(ev.Args); n > 0 {
						i := random.IntN(n)
						ev.Args = slices.Clone(ev.Args)
						// what fits into its field
						ev.Args[i] = value() & max(ev.Args[i]|0xff, 0xffff_ffff*uint64(random.IntN(2)))
						if ev.Kind == otf2.EventMpiCollectiveEnd && i == 0 ||
							ev.Kind == otf2.EventNonBlockingCollectiveComplete && i == 0 {
							ev.Args[i] &= 0xff
						}
					}
				}
			}
			analyze(t, s.Write())
		}
	}
}

// What happens at a location that is not defined is left out.
func TestUndefinedLocations(t *testing.T) {
	for _, path := range archives(t) {
		otf2test.EachWithoutLocation(t, path, func(t *testing.T, anchor string) { analyze(t, anchor) })
	}
}

// FuzzAnalysis: whatever stands in an archive, everything that can be made of it comes to an end.
func FuzzAnalysis(f *testing.F) {
	otf2test.Fuzz(f, archives(f), func(t *testing.T, anchor string) { analyze(t, anchor) })
}

// FuzzHang alters the description of a process of a job that is looked at while it runs.
func FuzzHang(f *testing.F) {
	base := filepath.Join(filepath.Dir(jobtest.WithWaits(f)), "shards")
	text := testkit.Value(os.ReadFile(filepath.Join(base, "p1", "shard.json")))(f)
	var p description.Process
	testkit.Must(f, json.Unmarshal(text, &p))
	for _, pending := range [][]description.Pending{
		{{Function: "AllReduce", Ordinal: 2, Since: t0 + 300*us, State: "running"}},
		{{Function: "Send>2", Ordinal: math.MaxUint64, Since: 1, State: "enqueued"}},
		{{Function: "Recv<-1", Since: math.MaxUint64, State: "calling"},
			{Function: "Send", Ordinal: 7, State: "called", Left: true}},
	} {
		p.Pending = pending
		text := testkit.Value(json.Marshal(&p))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, description []byte) {
		dir := t.TempDir()
		testkit.Must(t, os.CopyFS(filepath.Join(dir, "shards"), os.DirFS(base)))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "shards", "p1", "shard.json"), description, 0o600))
		now := time.Unix(1_760_000_001, 0)
		live := live.New(dir, 10*time.Second)
		for range 2 {
			if v, err := live.Look(now); err == nil {
				testkit.Must(t, Live(v, 1, 1).WriteText(io.Discard))
				testkit.Value(json.Marshal(v))(t)
			}
		}
		r, err := hang.Find(dir, now, nil)
		if err != nil {
			return
		}
		for _, write := range []func(io.Writer) error{Hang(r).WriteText, Hang(r).WriteCSV, Hang(r).WriteMarkdown} {
			testkit.Must(t, write(io.Discard))
		}
	})
}

// FuzzLive alters the events of a process of a job that is looked at while it runs: also behind what was read before.
func FuzzLive(f *testing.F) {
	j := jobtest.NewLiveJob(f, 2, 1)
	for i := range 20 {
		j.AllReduce(float64(i)*10+4, float64(i)*10+9, 0, 2)
	}
	j.Flush()
	files := testkit.Value(filepath.Glob(filepath.Join(j.Dir, "shards", "p1", "*.evt")))(f)
	slices.Sort(files)
	var names []string
	var contents [][]byte
	for _, path := range files {
		name := testkit.Value(filepath.Rel(j.Dir, path))(f)
		b := testkit.Value(os.ReadFile(path))(f)
		names, contents = append(names, name), append(contents, b)
	}
	for i, b := range contents {
		for _, at := range []int{9, len(b) / 3, len(b) - 20} {
			f.Add(uint8(i), uint32(at), []byte{0xff}, true)
			f.Add(uint8(i), uint32(at), []byte{0x0c, 0, 0x0d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, false)
		}
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint32, patch []byte, later bool) {
		dir := t.TempDir()
		testkit.Must(t, os.CopyFS(dir, os.DirFS(j.Dir)))
		i := int(file) % len(names)
		damage := func() {
			b := slices.Clone(contents[i])
			if len(b) > 0 {
				copy(b[int(at)%len(b):], patch)
			}
			testkit.Must(t, os.WriteFile(filepath.Join(dir, names[i]), b, 0o600))
		}
		if !later {
			damage()
		}
		live := live.New(dir, 10*time.Second)
		for ms := range 2 {
			v, err := live.Look(time.Unix(0, int64(jobtest.LiveAt(float64(300+100*ms)))))
			if err == nil {
				testkit.Must(t, Live(v, 1, 1).WriteText(io.Discard))
				testkit.Value(json.Marshal(v))(t)
			}
			damage()
		}
	})
}
