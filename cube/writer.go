// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Suffix is the suffix of every profile's name: tools accept no other.
const Suffix = ".cubex"

// Options of a profile to write; the zero value is what reads everywhere.
type Options struct {
	// Dense stores the rows of all cnodes. Otherwise rows without any value are left out.
	Dense bool
	// Compress stores rows and anchor compressed. Readers need to be built with zlib; not all are.
	Compress bool
}

// Writer writes one profile: values of metrics in any order, then Close. It is for one goroutine. After an error it
// refuses all else, and Close leaves no file behind.
type Writer struct {
	defs    *Definitions
	options Options
	tar     *tarWriter
	orders  map[MetricKind][]int32
	members map[string]bool
	err     error // the first
	closed  bool

	file *atomicfile.File // nil for one in memory
}

// Create begins the profile path, which ends in [Suffix]. The definitions must not change until Close. The file appears
// when it is whole, and replaces an older one.
func Create(path string, d *Definitions, o *Options) (*Writer, error) {
	if !strings.HasSuffix(path, Suffix) || filepath.Base(path) == Suffix {
		return nil, invalid("profile %q: tools take names that end in %s only", path, Suffix)
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	f, err := atomicfile.OutputFile(path, regular.File)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(f, d, o)
	if err != nil {
		return nil, errors.Join(err, f.Abandon())
	}
	w.file = f
	return w, nil
}

func newWriter(out output, d *Definitions, o *Options) (*Writer, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	tree := d.callTree()
	w := &Writer{defs: d, tar: newTarWriter(out), members: map[string]bool{memberAnchor: true},
		orders: map[MetricKind][]int32{Exclusive: tree.rowOrder(Exclusive), Inclusive: tree.rowOrder(Inclusive)}}
	if o != nil {
		w.options = *o
	}
	return w, nil
}

// WriteMetric writes the values of a metric that is not derived. It calls fill for each cnode, in the order of the
// file, which sets what values there are at that cnode; row is good for that call only, and begins as "no values":
// zeros, or what stands for no minimum or maximum. Values are those of the cnode alone, or with all below it, as the
// metric's kind says. A metric that is never written, or without values, reads as no values.
func (w *Writer) WriteMetric(id MetricID, fill func(c CnodeID, row *Row) error) error {
	if err := w.refuse(); err != nil {
		return err
	}
	if id < 0 || int(id) >= len(w.defs.Metrics) {
		return w.fail(invalid("there is no metric %d among %d", id, len(w.defs.Metrics)))
	}
	m := &w.defs.Metrics[id]
	name := memberPrefix(int(id), m.Hidden)
	switch {
	case m.Kind.Derived():
		return w.fail(invalid("metric %d %q is %s: it has no values", id, m.UniqueName, m.Kind))
	case w.members[name+suffixData]:
		return w.fail(invalid("metric %d %q is written twice", id, m.UniqueName))
	}
	w.members[name+suffixData] = true
	rows, err := w.writeData(name+suffixData, m, fill)
	if err != nil {
		return w.fail(fmt.Errorf("metric %d %q: %w", id, m.UniqueName, err))
	}
	// as if it had never been written, which is what Score-P does: a reader refuses an index of nothing
	if len(rows) == 0 {
		return nil
	}
	return w.fail(w.member(name+suffixIndex, writeIndex(rows, w.options.Dense)))
}

// writeData writes the data member and returns the numbers of its rows. Without rows there is no member.
func (w *Writer) writeData(member string, m *Metric, fill func(CnodeID, *Row) error) ([]uint32, error) {
	var data dataWriter
	var rows []uint32
	row := newRow(m, len(w.defs.Locations))
	nothing := bytes.Clone(row.data)
	for number, c := range w.orders[m.Kind] {
		copy(row.data, nothing)
		if err := errors.Join(fill(CnodeID(c), row), row.err); err != nil {
			return nil, fmt.Errorf("cnode %d: %w", c, err)
		}
		if !w.options.Dense && bytes.Equal(row.data, nothing) {
			continue
		}
		if data == nil {
			var err error
			if data, err = w.beginData(member); err != nil {
				return nil, err
			}
		}
		if err := data.row(row.data); err != nil {
			return nil, err
		}
		rows = append(rows, uint32(number))
	}
	if data == nil {
		return nil, nil
	}
	if err := data.finish(); err != nil {
		return nil, err
	}
	return rows, w.tar.end(0)
}

// beginData begins a member of values.
func (w *Writer) beginData(member string) (dataWriter, error) {
	if err := w.tar.begin(member); err != nil {
		return nil, err
	}
	if !w.options.Compress {
		_, err := io.WriteString(w.tar, dataMarker)
		return plainData{w.tar}, err
	}
	d, err := newCompressedData(w.tar)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w.tar, zdataMarker)
	return d, err
}

// WriteFile adds a member of another kind: the format keeps it, tools list it. If its size is a multiple of 512 bytes,
// a newline is added.
func (w *Writer) WriteFile(name string, content []byte) error {
	if err := w.refuse(); err != nil {
		return err
	}
	switch {
	case name == "" || len(name) > maxMemberName || strings.ContainsAny(name, "/\\\x00\r\n"):
		return w.fail(invalid("file %q in a profile: names have 1 to %d bytes and no folders", name, maxMemberName))
	case w.members[name]:
		return w.fail(invalid("file %q is there twice: readers see the later one", name))
	case strings.HasSuffix(name, suffixData), strings.HasSuffix(name, suffixIndex):
		return w.fail(invalid("file %q is named like the values of a metric", name))
	}
	w.members[name] = true
	return w.fail(w.member(name, content))
}

func (w *Writer) member(name string, content []byte) error {
	if err := w.tar.begin(name); err != nil {
		return err
	}
	if _, err := w.tar.Write(content); err != nil {
		return err
	}
	return w.tar.end('\n')
}

func (w *Writer) refuse() error {
	if w.closed {
		return ErrClosed
	}
	return w.err
}

// fail keeps the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// Close writes the definitions and gives the file its name; after an error it removes the file and returns the error.
func (w *Writer) Close() error {
	if w.closed {
		return ErrClosed
	}
	if w.err == nil {
		w.err = w.writeDefinitions()
	}
	if w.err == nil {
		w.err = w.tar.finish()
	}
	w.closed = true
	if w.file == nil {
		return w.err
	}
	if w.err != nil {
		return errors.Join(w.err, w.file.Abandon())
	}
	return w.file.Commit(atomicfile.Durable)
}

// Abandon removes what was written. It does nothing after Close, so that it can be deferred.
func (w *Writer) Abandon() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.file == nil {
		return nil
	}
	return w.file.Abandon()
}

func (w *Writer) writeDefinitions() error {
	if w.options.Compress {
		packed, err := w.defs.packedAnchor()
		if err != nil {
			return err
		}
		return w.member(memberAnchor, packed)
	}
	if err := w.tar.begin(memberAnchor); err != nil {
		return err
	}
	if err := w.defs.writeAnchor(w.tar); err != nil {
		return err
	}
	return w.tar.end('\n') // readers stop at </cube>
}

// packedAnchor compresses the anchor. Readers take the size of the text from the last four bytes, so that nothing can
// be appended: the text itself is made longer until the size is not a multiple of 512.
func (d *Definitions) packedAnchor() ([]byte, error) {
	for newlines := 0; ; newlines++ {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.DefaultCompression)
		if err != nil {
			return nil, err
		}
		if err := d.writeAnchor(z); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(z, strings.Repeat("\n", newlines)); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		if packed.Len()%tarBlock != 0 {
			return packed.Bytes(), nil
		}
	}
}
