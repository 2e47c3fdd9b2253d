// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// bounded fails if read allocates more than a file of size bytes gives reason for, whatever it claims. Compressed bytes
// can stand for a thousand times as many.
func bounded(t *testing.T, size int, read func()) {
	t.Helper()
	const fixed, perByte = 4 << 20, 20000
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	read()
	metrics.Read(sample)
	used := sample[0].Value.Uint64() - before
	testkit.Check(t, used <= fixed+perByte*uint64(size), "%d bytes allocated for a file of %d", used, size)
}

// expected are the errors that reading a broken profile may give.
func expected(t *testing.T, err error) {
	t.Helper()
	var format *FormatError
	testkit.Check(t, errors.As(err, &format) &&
		(errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotSupported)),
		"unexpected error %v", err)
}

// writtenAgain checks that a profile, where it can be written, is read back the same.
func writtenAgain(t *testing.T, p *Profile, v values) {
	t.Helper()
	b, err := written(&p.Definitions, v, nil)
	if errors.Is(err, ErrInvalid) {
		return // readers take more than writers should
	}
	check(t, err)
	q, err := inMemory(b)
	check(t, err)
	got, err := stored(q)
	check(t, err)
	testkit.Same(t, v, got)
	r, err := inMemory(b)
	check(t, err)
	testkit.Same(t, q.Definitions, r.Definitions)
}

// Any bytes are a profile or an error.
func FuzzProfile(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.cubex")
	testkit.Require(f, err == nil && len(paths) == 10, "%v %v", paths, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		check(f, err)
		if len(b) < 40<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, len(b), func() {
			p, err := inMemory(b)
			if err != nil {
				expected(t, err)
				return
			}
			if len(p.Metrics)*len(p.Cnodes)*len(p.Locations) > 1<<16 {
				return
			}
			v, err := stored(p)
			if err != nil {
				expected(t, err)
				return
			}
			writtenAgain(t, p, v)
		})
	})
}

// Any text is an anchor or an error.
func FuzzAnchor(f *testing.F) {
	for _, name := range []string{"minimal", "nccl-2x2", "cubew-sparse", "scorep-serial", "sample"} {
		p, err := Open("testdata/" + name + ".cubex")
		check(f, err)
		b, err := p.ReadFile(memberAnchor)
		check(f, err)
		f.Add(b)
		check(f, p.Close())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bounded(t, len(text), func() {
			var p Profile
			if _, err := p.parseAnchor(text); err != nil {
				testkit.Check(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) ||
					errors.Is(err, ErrNotSupported), "unexpected error %v", err)
				return
			}
			p.rows, p.severity, p.names = nil, make([]*severity, len(p.Metrics)), make([]string, len(p.Metrics))
			if len(p.Metrics)*len(p.Cnodes)*len(p.Locations) < 1<<12 {
				writtenAgain(t, &p, noValues(&p.Definitions))
			}
		})
	})
}

// noValues are what profiles without members for metrics read as.
func noValues(d *Definitions) values {
	v := make(values)
	if d.Check() == nil {
		complete(d, v)
	}
	return v
}

// An index is read back as it was written, and others are errors.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("CUBEX.INDEX\x01\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"), 2)
	f.Add([]byte("CUBEX.INDEX\x00\x00\x00\x01\x00\x00\x03"), 9)
	f.Fuzz(func(t *testing.T, b []byte, cnodes int) {
		x, err := readIndex(b, cnodes)
		if err != nil {
			return
		}
		again, err := readIndex(writeIndex(x.rows, x.dense), cnodes)
		check(t, err)
		diff := cmp.Diff(x.rows, again.rows)
		testkit.Check(t, diff == "" && x.dense == again.dense, "%s", diff)
	})
}
