// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// makeRemote makes the shard one of another machine's, whose lock nobody sees.
func makeRemote(t *testing.T, s *Store) {
	t.Helper()
	testkit.Must(t, s.Close())
	text := testkit.Value(json.Marshal(writer{Host: "far", Place: place{Boot: "another boot"},
		PID: 1, Locked: true}))(t)
	testkit.Must(t, os.WriteFile(filepath.Join(s.Path(), lockFile), text, FileMode))
}

// A flush writes shard.json, then events, then the checkpoint, which alone speaks of them. So of a writer that works,
// or that died a moment ago on another machine, it says more than shard.json does until that is written anew.
func TestWhatWasFlushedIsRead(t *testing.T) {
	events := func(n uint64) *description.Process {
		return &description.Process{Version: description.Version, UUID: "one", Locations: []description.Location{{Events: n, Bytes: 20 + int64(n)}}}
	}
	for _, c := range []struct {
		name   string
		away   func(*testing.T, *Store)
		state  State
		writes func(s *Store) error
		want   uint64
	}{
		{"between flushes", nil, Writing, func(*Store) error { return nil }, 5},
		{"between flushes, of a machine that may have died", makeRemote, Writing, func(*Store) error { return nil }, 5},
		{"in the next flush", nil, Writing, func(s *Store) error {
			p := events(7)
			p.Serial = 1
			return s.Write(p)
		}, 7},
		{"without a checkpoint", nil, Writing, func(s *Store) error { return s.root.Remove(CheckpointFile) }, 0},
		{"with one that cannot be read", nil, Writing,
			func(s *Store) error { return s.root.WriteFile(CheckpointFile, []byte(`{"serial":9,`), FileMode) }, 0},
		{"with one of another version", nil, Writing, func(s *Store) error {
			return s.root.WriteFile(CheckpointFile, []byte(`{"version":99,"serial":9}`), FileMode)
		}, 0},
		// Whoever brings a dead one's shard back to a checkpoint says so in shard.json.
		{"dead", func(t *testing.T, s *Store) { testkit.Must(t, s.Close()) }, Dead, func(*Store) error { return nil },
			0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := testkit.Value(Create(dir, "one"))(t)
			t.Cleanup(func() { _ = s.Close() })
			p := events(0)
			testkit.Must(t, s.Write(p))
			p.Locations[0] = events(5).Locations[0]
			testkit.Value(s.Checkpoint(p))(t)
			testkit.Must(t, c.writes(s))
			if c.away != nil {
				c.away(t, s)
			}
			e := Find(dir, "one")
			testkit.Check(t, e.Err == nil && e.State == c.state && e.Process != nil &&
				e.Process.Locations[0].Events == c.want && e.Process.Instead == nil, "%+v, %+v; want %d events", e,
				e.Process, c.want)
		})
	}
}
