// SPDX-License-Identifier: Apache-2.0

// Package otf2test damages archives for tests.
package otf2test

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Files are an archive's files, by their paths beside the anchor.
type Files struct {
	anchor string
	byName map[string][]byte
}

// ReadFiles reads the files of the archive with that anchor.
func ReadFiles(t testing.TB, anchor string) *Files {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(anchor), ".otf2")
	all := make(map[string][]byte)
	dir := filepath.Dir(anchor)
	testkit.Must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && path != name:
			return fs.SkipDir
		case !d.IsDir() && (strings.HasPrefix(path, name+".") || strings.HasPrefix(path, name+"/")):
			all[path], err = os.ReadFile(filepath.Join(dir, path))
		}
		return err
	}))
	return &Files{filepath.Base(anchor), all}
}

// Names are their names, sorted.
func (f *Files) Names() []string { return slices.Sorted(maps.Keys(f.byName)) }

// Content is what stands in one of them. It is not to be altered.
func (f *Files) Content(name string) []byte { return f.byName[name] }

// With writes them into a folder of the test's, one of them with another content, and returns the anchor.
func (f *Files) With(t testing.TB, name string, content []byte) (anchor string) {
	t.Helper()
	dir := t.TempDir()
	for n, b := range f.byName {
		if n == name {
			b = content
		}
		path := filepath.Join(dir, n)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Must(t, os.WriteFile(path, b, 0o666))
	}
	return filepath.Join(dir, f.anchor)
}

// Fuzz lets use look at the archives with these anchors after bytes of one of their files have been altered, and its
// end cut off. What goes on for a minute is a fault, as what panics.
func Fuzz(f *testing.F, anchors []string, use func(t *testing.T, anchor string)) {
	var bases []*Files
	for i, anchor := range anchors {
		bases = append(bases, ReadFiles(f, anchor))
		for file := range bases[i].Names() {
			f.Add(uint8(i), uint8(file), uint32(40*(file+1)), []byte{0xff}, uint32(0))
			f.Add(uint8(i), uint8(file), uint32(20*(file+1)), []byte{0x0c, 0, 0x0d}, uint32(7))
		}
	}
	f.Fuzz(func(t *testing.T, base, file uint8, at uint32, patch []byte, cut uint32) {
		all := bases[int(base)%len(bases)]
		names := all.Names()
		name := names[int(file)%len(names)]
		b := slices.Clone(all.Content(name))
		if len(b) == 0 {
			return
		}
		copy(b[int(at)%len(b):], patch)
		b = b[:len(b)-int(cut)%len(b)]
		limit := time.AfterFunc(5*time.Minute, func() { panic("it does not end") }) // on a busy machine, too
		defer limit.Stop()
		use(t, all.With(t, name, b))
	})
}

// unknownRecord is the id of no definition: readers pass over such records.
const unknownRecord = 250

// EachWithoutLocation lets use look at the archive with that anchor without the definition of each of its locations in
// turn. All else is left, also what refers to the location, and its events.
func EachWithoutLocation(t *testing.T, anchor string, use func(t *testing.T, anchor string)) {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	files := ReadFiles(t, anchor)
	name := strings.TrimSuffix(files.anchor, ".otf2") + ".def"
	for _, l := range a.Defs.Locations {
		record := appendCompressed(nil, uint64(l.Self))
		record = append(appendCompressed(record, uint64(l.Name)), byte(l.Type))
		record = appendCompressed(appendCompressed(record, l.Events), uint64(l.Group))
		record = append([]byte{byte(otf2.DefLocation), byte(len(record))}, record...)
		b := slices.Clone(files.Content(name))
		at := bytes.Index(b, record)
		testkit.Require(t, at >= 0, "no definition of location %d in %s", l.Self, name)
		b[at] = unknownRecord
		use(t, files.With(t, name, b))
	}
}

// appendCompressed writes a number as definitions have it, in little-endian order.
func appendCompressed(b []byte, v uint64) []byte {
	n := 0
	for rest := v; rest > 0; rest >>= 8 {
		n++
	}
	return append(append(b, byte(n)), binary.LittleEndian.AppendUint64(nil, v)[:n]...)
}
