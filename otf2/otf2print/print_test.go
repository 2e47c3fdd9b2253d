// SPDX-License-Identifier: Apache-2.0

package otf2print_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

// reference reads a text of the reference tool.
func reference(t *testing.T, path string) string {
	t.Helper()
	if b, err := os.ReadFile(path); err == nil {
		return string(b)
	}
	f := testkit.Value(os.Open(path + ".gz"))(t)
	defer f.Close()
	z := testkit.Value(gzip.NewReader(f))(t)
	b := testkit.Value(io.ReadAll(z))(t)
	return string(b)
}

// definitionsText is the output of otf2-print -I, -G, and -M -C.
func definitionsText(t *testing.T, a *otf2.Archive) string {
	var b bytes.Buffer
	opts := &otf2print.Options{Zone: time.UTC}
	b.WriteString(otf2print.Title)
	testkit.Must(t, otf2print.Anchor(&b, a, nil))
	b.WriteString(otf2print.Title)
	testkit.Must(t, otf2print.Definitions(&b, a, opts))
	b.WriteString(otf2print.Title)
	testkit.Must(t, otf2print.LocalDefs(&b, a, opts))
	return b.String()
}

// eventsText is the output of otf2-print without options.
func eventsText(t *testing.T, a *otf2.Archive, opts *otf2print.Options) string {
	var b bytes.Buffer
	b.WriteString(otf2print.Title)
	testkit.Must(t, otf2print.Events(&b, a, opts))
	if a.Anchor.Snapshots > 0 {
		testkit.Must(t, otf2print.Snapshots(&b, a, opts))
	}
	return b.String()
}

// The texts of all archives of libotf2 are those of the reference tool.
func TestTextOfReferenceArchives(t *testing.T) {
	anchors, err := filepath.Glob("../testdata/*/*.otf2")
	testkit.Require(t, err == nil && len(anchors) == 11, "%d archives, want 11 (%v)", len(anchors), err)
	for _, path := range anchors {
		a := testkit.Value(otf2.Open(path, nil))(t)
		name := filepath.Base(filepath.Dir(path))
		text := filepath.Join(filepath.Dir(path), name)
		golden.SameLines(t, name+" definitions", definitionsText(t, a), reference(t, text+".defs.txt"))
		events := ".print.txt"
		if name == "v32-events" {
			events = ".print-3.2.txt"
		}
		golden.SameLines(t, name+" events", eventsText(t, a, nil), reference(t, text+events))
	}
}

// Thumbnails stand in the text of 3.2.
func TestThumbnails(t *testing.T) {
	a := testkit.Value(otf2.Open("../testdata/aux-files/aux.otf2", nil))(t)
	var b bytes.Buffer
	testkit.Must(t, otf2print.Thumbnails(&b, a, nil))
	all := reference(t, "../testdata/aux-files/aux-files.all-3.2.txt")
	got := b.String()
	testkit.Check(t, strings.Contains(all, got) && strings.Count(got, "THUMBNAIL_HEADER") == 3, "thumbnails:\n%s", got)
	for i, samples := range []int{3, 4, 5} {
		th := testkit.Value(a.Thumbnail(uint32(i)))(t)
		testkit.Check(t, len(th.Samples) == samples && len(th.Samples[0].Values) == len(th.Refs),
			"thumbnail %d: %d samples of %d values", i, len(th.Samples), len(th.Samples[0].Values))
	}
}

// Markers: the definitions that the reference tool lists stand with theirs; it drops repeated categories.
func TestMarkers(t *testing.T) {
	a := testkit.Value(otf2.Open("../testdata/aux-files/aux.otf2", nil))(t)
	var b bytes.Buffer
	testkit.Must(t, otf2print.Markers(&b, a, nil))
	want := strings.Split(strings.TrimSpace(reference(t, "../testdata/aux-files/aux-files.markers.txt")), "\n")
	got := b.String()
	for _, line := range want {
		testkit.Contains(t, got, line+"\n")
	}
	n := strings.Count(got, "\n")
	testkit.Check(t, n == 10, "%d lines, want 10:\n%s", n, got)
}

// Selected locations and times are the lines of the whole text that they name.
func TestSelection(t *testing.T) {
	a := testkit.Value(otf2.Open("../testdata/collectives/nccl.otf2", nil))(t)
	var want []string
	lines := strings.Split(eventsText(t, a, nil), "\n")
	keep := false
	for _, line := range lines[:len(lines)-1] {
		f := strings.Fields(line)
		switch {
		case len(want) < 5:
			keep = true
		case len(f) > 2 && f[0] != "ADDITIONAL":
			keep = f[1] == "1" && f[2] >= "1200" && f[2] <= "1399"
		}
		if keep {
			want = append(want, line)
		}
	}
	got := eventsText(t, a, &otf2print.Options{Locations: []otf2.LocationRef{1}, From: 1200, To: 1399})
	golden.SameLines(t, "selection", got, strings.Join(want, "\n")+"\n")
	testkit.Check(t, len(want) >= 10, "only %d lines", len(want))
}

// Each event of the table has a layout.
func TestEveryEventHasText(t *testing.T) {
	a := testkit.Value(otf2.Open("../testdata/all-events/events.otf2", nil))(t)
	p := otf2print.NewPrinter(a)
	for id := range 256 {
		kind := otf2.EventKind(id)
		if !kind.Known() {
			continue
		}
		args := make([]uint64, 0, len(kind.Fields()))
		for _, f := range kind.Fields() {
			if !f.Repeated {
				args = append(args, 0)
			}
		}
		line := string(p.Event(&otf2.Event{Kind: kind, Args: args}))
		testkit.Check(t, (len(args) == 0 || !strings.HasSuffix(line, "  \n")) && !strings.HasPrefix(line, "UNKNOWN"),
			"%v: %q", kind, line)
	}
}
