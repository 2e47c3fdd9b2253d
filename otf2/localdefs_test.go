// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A location without its file of definitions is damaged where others have one, or where the writer always makes them;
// of an archive without any, ids and times are its own.
func TestMissingLocalDefinitions(t *testing.T) {
	for _, c := range []struct {
		name, creator string
		kept          []LocationRef // that keep their definitions
		damaged       []LocationRef
	}{
		{"all are there", "sample", []LocationRef{0, 1}, nil},
		{"none is there", "sample", nil, nil},
		{"one is missing", "sample", []LocationRef{1}, []LocationRef{0}},
		{"none of Score-P's is there", "Score-P 8.4", nil, []LocationRef{0, 1}},
		{"none of this project's is there", "nccl-otf2 2.0", nil, []LocationRef{0, 1}},
	} {
		archive := testkit.Value(Create(t.TempDir(), "traces", &ArchiveOptions{Creator: c.creator}))(t)
		defs := archive.Definitions()
		testkit.Must(t, defs.ClockProperties(1e9, 0, 100, 0))
		testkit.Must(t, defs.String(0, "x"))
		testkit.Must(t, defs.SystemTreeNode(0, 0, 0, UndefinedSystemTreeNode))
		testkit.Must(t, defs.LocationGroup(0, 0, LocationGroupTypeProcess, 0, UndefinedLocationGroup))
		for l := range LocationRef(2) {
			testkit.Must(t, defs.Location(l, 0, LocationTypeCPUThread, 0, 0))
			events := testkit.Value(archive.Events(l))(t)
			testkit.Must(t, events.Enter(10, nil, 0))
		}
		testkit.Must(t, archive.Close())
		folder := strings.TrimSuffix(archive.Path(), ".otf2")
		for l := range LocationRef(2) {
			os.Remove(locationFile(folder, l, ".def"))
		}
		for _, l := range c.kept {
			testkit.Must(t, WriteLocalDefs(locationFile(folder, l, ".def"), nil, nil, 0))
		}
		a := testkit.Value(Open(archive.Path(), nil))(t)
		var damaged []LocationRef
		events := 0
		for _, err := range a.Events(nil) {
			var format *FormatError
			switch {
			case err == nil:
				events++
			case !errors.As(err, &format) || !errors.Is(err, fs.ErrNotExist) || filepath.Ext(format.File) != ".def":
				t.Errorf("%s: %v", c.name, err)
			default:
				damaged = append(damaged, format.Location)
			}
		}
		testkit.Check(t, len(damaged) == len(c.damaged) && events == 2-len(damaged),
			"%s: locations %v are damaged and %d events are read, want %v and the events of the others", c.name,
			damaged, events, c.damaged)
		for l := range LocationRef(2) {
			if _, _, err := a.LocalDefs(l); (err != nil) != (len(c.damaged) > 0 && (l == c.damaged[0] || len(c.damaged) == 2)) {
				t.Errorf("%s: definitions of location %d: %v", c.name, l, err)
			}
		}
	}
}
