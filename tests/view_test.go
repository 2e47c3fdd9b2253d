// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// The view of every recording meets what scout asks of archives, and shows every operation that was recorded, with its
// root and bytes: once on each member, but for messages whose times cannot be compared, which are counted. Played with
// live clocks, each process is as fast as it goes, so the ranks' times can contradict each other; then operations are
// left out, and counted.
func TestViewsOfRecordings(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t) {
		want, collectives, messages := expectedRecords(expect(rec))
		for _, c := range []replay.Clock{replay.ClockRecorded, replay.ClockLive} {
			t.Run(fmt.Sprintf("%s/%s", rec.Name, c), func(t *testing.T) {
				t.Parallel()
				dir, _ := play(t, rec, clock(c))
				res := testkit.Value(view.Scalasca(filepath.Join(dir, "traces.otf2"), filepath.Join(dir, "scalasca"),
					nil))(t)
				cycles, untimed := res.Dropped[view.ReasonCycle], res.Dropped[view.ReasonUntimed]
				testkit.Check(t, res.Collectives+res.Messages+cycles+untimed == collectives+messages &&
					res.Lost() == cycles+untimed && len(res.Problems) == 0 && res.MembersWithoutData <= 0,
					"%+v, want %d collectives and %d messages", res, collectives, messages)
				for name, check := range map[string]func(string, *check.Options) (*check.Result, error){
					"check": check.Archive, "scout": scoutrules.Check,
				} {
					found := testkit.Value(check(res.Archive, nil))(t)
					for _, f := range found.Findings {
						testkit.Check(t, c == replay.ClockLive && f.Rule == scoutrules.RuleScoutClock,
							"%s: %v", name, f)
					}
				}
				otf2Print(t, res.Archive)
				if c == replay.ClockLive && cycles > 0 {
					return
				}
				got, missing := recordsOf(t, res.Archive), uint64(0)
				for record, n := range want {
					if short := n - got[record]; short < 0 || short > 0 && !strings.HasPrefix(record, "Send ") &&
						!strings.HasPrefix(record, "Recv ") {
						t.Errorf("%s: %d, want %d", record, got[record], n)
					} else {
						missing += uint64(short)
					}
					delete(got, record)
				}
				testkit.Check(t, len(got) == 0 && missing == 2*untimed,
					"%v besides; %d ends of messages are missing, of %d that cannot be compared", got, missing, untimed)
			})
		}
	}
}

// expectedRecords counts the records of MPI that an archive must have of operations. Where sizes are not known one
// byte per rank is shown.
func expectedRecords(e *expected) (records map[string]int, collectives, messages uint64) {
	records = make(map[string]int)
	for m, of := range e.operations {
		if e.nranks[m.comm] < 2 {
			continue
		}
		for _, ops := range of {
			for _, op := range ops {
				sent := op.Sent
				switch op.Name {
				case "Send":
					messages++
					records[fmt.Sprintf("Send %d>%d %d bytes", m.rank, op.Root, max(sent, 1))]++
				case "Recv":
					records[fmt.Sprintf("Recv %d>%d %d bytes", op.Root, m.rank, max(op.Received, 1))]++
				default:
					if m.rank == 0 {
						collectives++
					}
					records[fmt.Sprintf("%s rank %d root %d sent %d received %d", op.Name, m.rank, op.Root, sent,
						op.Received)]++
				}
			}
		}
	}
	return records, collectives, messages
}

// recordsOf counts an archive's records of MPI operations.
func recordsOf(t *testing.T, anchor string) map[string]int {
	t.Helper()
	a := openArchive(t, anchor)
	records := make(map[string]int)
	for _, l := range a.Defs.Locations {
		rank := func(comm uint64) int {
			return slices.Index(a.Defs.Group(a.Defs.Comm(otf2.CommRef(comm)).Group).Members, uint64(l.Self))
		}
		name := ""
		for ev, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			x := ev.Args
			switch ev.Kind {
			case otf2.EventEnter:
				name, _, _ = strings.Cut(a.Defs.String(a.Defs.Region(otf2.RegionRef(x[0])).Name), " (")
			case otf2.EventMpiIsend:
				records[fmt.Sprintf("Send %d>%d %d bytes", rank(x[1]), x[0], x[3])]++
			case otf2.EventMpiIrecv:
				records[fmt.Sprintf("Recv %d>%d %d bytes", x[0], rank(x[1]), x[3])]++
			case otf2.EventMpiCollectiveEnd:
				root := int64(x[2])
				if x[2] == uint64(otf2.CollectiveRootNone) {
					root = -1
				}
				records[fmt.Sprintf("%s rank %d root %d sent %d received %d", strings.TrimPrefix(name, "nccl"),
					rank(x[1]), root, x[3], x[4])]++
			}
		}
	}
	return records
}
