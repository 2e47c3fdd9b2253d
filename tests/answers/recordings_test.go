// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// causes are the words of recordings for what held ranks up.
var causes = map[string]verdict.Kind{
	"host late": verdict.HostLate, "gpu slow": verdict.GPULate, "link slow": verdict.SlowTransfer,
	"missing": verdict.Missing, "order": verdict.Order, "mismatch": verdict.Mismatch,
	"none": "", "start-up": "",
}

// label is the truth in a recording's run.json.
type label struct {
	Kind     string                  `json:"kind"`
	Culprits []int                   `json:"culprits"`
	Why      string                  `json:"why"`
	Shares   map[string]float64      `json:"shares"` // by rank
	Link     *struct{ From, To int } // the slow one
}

// truth takes the label's words into ours.
func (l *label) truth() (truth, error) {
	kind, ok := causes[l.Why]
	if !ok {
		return truth{}, fmt.Errorf("%q is an unknown cause", l.Why)
	}
	peer := -1
	if l.Link != nil {
		peer = l.Link.To
	}
	tr := truth{inside: l.Kind == "link-slow" || l.Kind == "gpu-slow"}
	for _, r := range l.Culprits {
		c := culprit{rank: r, kind: kind, peer: peer, share: math.NaN()}
		if delays(kind) {
			if c.share, ok = l.Shares[strconv.Itoa(r)]; !ok {
				return truth{}, fmt.Errorf("culprit %d has no share", r)
			}
		}
		tr.culprits = append(tr.culprits, c)
	}
	if (len(tr.culprits) == 0) != (kind == "") {
		return truth{}, fmt.Errorf("%q with %d culprits", l.Why, len(tr.culprits))
	}
	return tr, nil
}

// delays says of a kind that it costs time, and so has a share of the waiting.
func delays(k verdict.Kind) bool {
	return k == verdict.HostLate || k == verdict.GPULate || k == verdict.SlowTransfer
}

// late is the one of the recordings without labels in which somebody was held up. Source:
// testdata/nccl-callbacks/README.md.
const late = "09-straggler-4p"

// shared names the recordings of a GPU that two ranks took turns on, each for about 2 ms. Whoever is not on it keeps
// the other waiting, which is neither nobody's doing nor a rank's.
const shared = "-gpu-few-2p"

// known are all recordings with what held ranks up in them, by their folder, but for those of a GPU that is shared.
func known(t *testing.T) map[string]truth {
	t.Helper()
	all := make(map[string]truth)
	labeled, err := filepath.Glob("../../testdata/nccl-causes/*/run.json")
	testkit.Require(t, err == nil && len(labeled) != 0, "no labeled recordings: %v", err)
	for _, file := range labeled {
		text := testkit.Read(t, file)
		var run struct{ Truth label }
		err := json.Unmarshal(text, &run)
		testkit.Require(t, err == nil, "%s: %v", file, err)
		tr, err := run.Truth.truth()
		testkit.Require(t, err == nil, "%s: %v", file, err)
		all[filepath.Dir(file)] = tr
	}
	others, err := filepath.Glob("../../testdata/nccl-callbacks/*/run.json")
	testkit.Require(t, err == nil && len(others) != 0, "no recordings: %v", err)
	for _, file := range others {
		folder := filepath.Dir(file)
		if strings.Contains(filepath.Base(folder), shared) {
			continue
		}
		all[folder] = truth{}
		if filepath.Base(folder) == late {
			all[folder] = truth{culprits: []culprit{{rank: 2, kind: verdict.HostLate, peer: -1, share: 1}}}
		}
	}
	return all
}

// In recordings of real NCCL the tool names who held the others up, in what way, and with what share, and nobody where
// nobody did.
func TestRecordings(t *testing.T) {
	var lock sync.Mutex
	rows := make(map[string]string)
	t.Run("each", func(t *testing.T) {
		for folder, tr := range known(t) {
			name := filepath.Base(folder)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := testkit.Value(play(t, folder, "net"))(t)
				c := tr.compare(v)
				faults := append(c.faults(), c.off()...)
				for _, f := range faults {
					t.Error(f)
				}
				if len(faults) > 0 || testing.Verbose() {
					t.Logf("in truth: %s\n\tanswer: %s", list(tr.culprits), said(v))
				}
				var names []culprit
				for i := range v.Culprits {
					names = append(names, named(&v.Culprits[i]))
				}
				lock.Lock()
				rows[name] = fmt.Sprintf("| %s | %s | %s |\n", name, list(tr.culprits), list(names))
				lock.Unlock()
			})
		}
	})
	if !golden.Updating() || t.Failed() {
		return
	}
	text := "\n| recording | in truth | named |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text += rows[name]
	}
	golden.SectionMadeBy(t, page, "recordings", "make answers", text+"\n")
}

// What is recorded by default tells of no transfers: then slow links and GPUs are not named, nor anybody in their
// place; what to record is. All others are named as ever.
func TestRecordingsByDefault(t *testing.T) {
	for folder, tr := range known(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			v := testkit.Value(play(t, folder, "gpu"))(t)
			if !tr.inside {
				c := tr.compare(v)
				for _, f := range c.faults() {
					t.Error(f)
				}
				return
			}
			testkit.Check(t, len(v.Culprits) == 0 && strings.HasPrefix(v.Text, "Not known who made the others wait") &&
				strings.HasSuffix(v.Text, "Record with NCCL_OTF2_EVENTS=net.") && v.Unknown >= 0.9,
				"%s (%.2f unknown)", v.Text, v.Unknown)
		})
	}
}

// play plays a recording, records events of it, and asks for the verdict.
func play(t *testing.T, folder, events string) (*verdict.Verdict, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "experiment")
	if _, err := output(t, "replay", folder, "--clock", "recorded", "--events", events, "--dir", dir); err != nil {
		return nil, err
	}
	return answer(t, dir)
}
