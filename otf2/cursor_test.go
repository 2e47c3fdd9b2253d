// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A cursor gives what the iteration gives, also of damaged files, and of what is selected.
func TestCursorGivesTheSameEvents(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.CopyFS(dir, os.DirFS("testdata/mapping")))
	path := filepath.Join(dir, "mapping.otf2")
	for _, damaged := range []bool{false, true} {
		a := testkit.Value(Open(path, nil))(t)
		if damaged {
			testkit.Must(t, os.Truncate(a.EventFile(a.Defs.Locations[0].Self), 60))
			testkit.Must(t, os.Remove(a.EventFile(a.Defs.Locations[1].Self)))
		}
		for _, sel := range []*Selection{nil, {Locations: []LocationRef{a.Defs.Locations[0].Self}},
			{Kinds: Kinds(EventEnter)}} {
			var want, got []string
			text := func(ev *Event, err error) string {
				if err != nil {
					return err.Error()
				}
				return fmt.Sprint(ev.Location, ev.Time, ev.Kind, ev.Args, ev.Attributes)
			}
			for ev, err := range a.Events(sel) {
				want = append(want, text(ev, err))
			}
			c := a.Cursor(sel)
			for ev, ok, err := c.Next(); ok; ev, ok, err = c.Next() {
				got = append(got, text(ev, err))
			}
			if _, ok, _ := c.Next(); ok || !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("damaged %v, selection %+v: %d events and errors, want %d", damaged, sel, len(got), len(want))
			}
			c.Close()
			_, ok, _ := c.Next()
			testkit.Check(t, !ok, "a closed cursor goes on")
		}
		a.Close()
	}
}
