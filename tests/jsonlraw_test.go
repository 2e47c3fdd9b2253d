// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// With raw events the records are the minimal profiler's: one for each event and each state that NCCL delivered, none
// without its thread, each state with an event that there is; and what an import makes of them is what the recording
// says.
func TestRawRecordsAreAll(t *testing.T) {
	t.Parallel()
	rec := recording(t, "02-allcoll-4p-net")
	dir := t.TempDir()
	run := func(args ...string) []byte {
		cmd := exec.Command(builtFile(t, "nccl-otf2"), args...)
		cmd.Env = append(os.Environ(), "NCCL_OTF2_RAW=on")
		out := testkit.Output(t, cmd)
		return out
	}
	run("export", "--jsonl", rec.Dir, "-o", filepath.Join(dir, "jsonl"))
	files, _ := filepath.Glob(filepath.Join(dir, "jsonl", "*.jsonl"))
	testkit.Require(t, len(files) == len(rec.Processes), "%d files", len(files))
	starts, states := make(map[string]int), make(map[string]int)
	for _, file := range files {
		text := testkit.Value(os.ReadFile(file))(t)
		events, named := make(map[string]bool), make(map[string]bool)
		for line := range bytes.Lines(text) {
			var r struct {
				RecordType, Type, Name, EventAddr string
				TID                               *int
				CommID                            *uint64
				Start, Stop                       struct{ TID *int }
			}
			testkit.Must(t, json.Unmarshal(line, &r))
			switch {
			case r.RecordType == "state":
				states[r.Name]++
				named[r.EventAddr] = true
				testkit.Check(t, r.TID != nil, "without thread: %s", line)
			case r.Type != "ProfilerLifecycle":
				starts[r.Type[len("ncclProfile"):]]++
				events[r.EventAddr] = true
				testkit.Check(t, r.Start.TID != nil && r.Stop.TID != nil && r.CommID != nil,
					"without thread or communicator: %s", line)
			}
		}
		for event := range named {
			testkit.Check(t, events[event], "%s: states of %s, which is no event", filepath.Base(file), event)
		}
	}
	if !maps.Equal(starts, rec.Run.Starts) || !maps.Equal(states, rec.Run.States) {
		t.Errorf("events and states: want (−), got (+):\n%s",
			cmp.Diff([]any{rec.Run.Starts, rec.Run.States}, []any{starts, states}))
	}

	imported := filepath.Join(dir, "imported")
	run("import", filepath.Join(dir, "jsonl"), "-o", imported)
	testkit.Same(t, operationsIn(t, run("report", rec.Dir, "--format", "json")),
		operationsIn(t, run("report", imported, "--format", "json")))
}

// operationsIn are the operations in a report, without times: of a release that is not known NCCL's stamps are believed
// less often.
func operationsIn(t *testing.T, report []byte) any {
	t.Helper()
	var r struct {
		Operations []struct {
			Operation, Datatype, Algorithm, Protocol string
			Size, Count                              uint64
		}
	}
	testkit.Must(t, json.Unmarshal(report, &r))
	testkit.Check(t, len(r.Operations) != 0, "the report has no operations")
	var all []string
	for _, o := range r.Operations {
		all = append(all, fmt.Sprint(o))
	}
	slices.Sort(all)
	return all
}
