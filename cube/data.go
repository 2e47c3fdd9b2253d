// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zlib"
)

// dataWriter writes the rows of a metric.
type dataWriter interface {
	row(values []byte) error
	finish() error
}

// plainData is the marker, then the rows.
type plainData struct{ w io.Writer }

func (d plainData) row(values []byte) error {
	_, err := d.w.Write(values)
	return err
}

func (plainData) finish() error { return nil }

// compressedData is the marker, the number of rows (8 bytes), the table of rows, and a zlib stream for each row. As the
// table stands in front, the compressed rows are held until the end. Numbers have the least significant byte first.
type compressedData struct {
	w      io.Writer
	table  []byte
	rows   uint64
	plain  uint64 // bytes of values so far
	stream bytes.Buffer
	zlib   *zlib.Writer
}

// compressionLevel is the one that the reference writer uses.
const compressionLevel = zlib.BestSpeed

func newCompressedData(w io.Writer) (*compressedData, error) {
	d := &compressedData{w: w}
	z, err := zlib.NewWriterLevel(&d.stream, compressionLevel)
	d.zlib = z
	return d, err
}

func (d *compressedData) row(values []byte) error {
	start := d.stream.Len()
	d.zlib.Reset(&d.stream)
	if _, err := d.zlib.Write(values); err != nil {
		return err
	}
	if err := d.zlib.Close(); err != nil {
		return err
	}
	for _, v := range []uint64{d.plain, uint64(start), uint64(d.stream.Len() - start)} {
		d.table = binary.LittleEndian.AppendUint64(d.table, v)
	}
	d.rows++
	d.plain += uint64(len(values))
	return nil
}

func (d *compressedData) finish() error {
	if _, err := d.w.Write(binary.LittleEndian.AppendUint64(nil, d.rows)); err != nil {
		return err
	}
	if _, err := d.w.Write(d.table); err != nil {
		return err
	}
	_, err := d.stream.WriteTo(d.w)
	return err
}

// severity is where the values of a metric are in a file.
type severity struct {
	index  index
	data   section
	packed []byte // table of a compressed member, in the index's byte order
	rows   int    // stored
}

// openSeverity looks at the index and the outline of the data.
func openSeverity(x index, data section, rowSize int64, cnodes int) (*severity, error) {
	s := &severity{index: x, data: data}
	head, err := data.read(0, min(data.size, int64(zdataTable)))
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte(dataMarker)):
		return s, s.outlinePlain(rowSize, cnodes)
	case bytes.HasPrefix(head, []byte(zdataMarker)):
		return s, s.outlineCompressed(head, rowSize, cnodes)
	case len(head) < len(dataMarker):
		return nil, truncated("%d bytes of values", len(head))
	}
	return nil, corrupt("values begin with %s or %s, these with %q", dataMarker, zdataMarker, head[:len(dataMarker)])
}

// outlinePlain counts the rows. The end of a dense member may be missing, as rows of nothing.
func (s *severity) outlinePlain(rowSize int64, cnodes int) error {
	room := s.data.size - int64(len(dataMarker))
	there := room / rowSize
	want := int64(len(s.index.rows))
	if s.index.dense {
		want = int64(cnodes)
		if there < want && room%rowSize == 0 {
			want = there
		}
	}
	if there < want {
		return truncated("%d rows of %d bytes should be there, and %d bytes are", want, rowSize, room)
	}
	s.rows = int(want)
	return nil
}

func (s *severity) outlineCompressed(head []byte, rowSize int64, cnodes int) error {
	if len(head) < zdataTable {
		return truncated("%d bytes of compressed values", len(head))
	}
	n := s.index.order.Uint64(head[len(zdataMarker):])
	if room := uint64(s.data.size-int64(zdataTable)) / zdataEntry; n > room {
		return truncated("a table of %d compressed rows should be there, and there is room for %d", n, room)
	}
	want := uint64(len(s.index.rows))
	if s.index.dense {
		want = min(n, uint64(cnodes))
	}
	if n != want {
		return corrupt("the index has %d rows, the compressed values have %d", want, n)
	}
	table, err := s.data.read(int64(zdataTable), int64(n)*zdataEntry)
	if err != nil {
		return err
	}
	streams := uint64(s.data.size - int64(zdataTable) - int64(len(table)))
	for i := range n {
		plain, from, size := s.entry(table, int(i))
		if plain != i*uint64(rowSize) || from > streams || size > streams-from {
			return corrupt("compressed row %d: values at %d, bytes %d at %d of %d", i, plain, size, from, streams)
		}
	}
	s.packed, s.rows = table, int(n)
	return nil
}

func (s *severity) entry(table []byte, i int) (plain, from, size uint64) {
	e := table[i*zdataEntry:]
	u := s.index.order.Uint64
	return u(e), u(e[8:]), u(e[16:])
}

// readRow reads the values of row number row into data, or says that none are stored.
func (s *severity) readRow(row uint32, data []byte) (bool, error) {
	at, found := s.index.position(row)
	if !found || at >= s.rows {
		return false, nil
	}
	if s.packed == nil {
		return true, s.data.readInto(data, int64(len(dataMarker))+int64(at)*int64(len(data)))
	}
	_, from, size := s.entry(s.packed, at)
	b, err := s.data.read(int64(zdataTable)+int64(len(s.packed))+int64(from), int64(size))
	if err != nil {
		return true, err
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return true, corrupt("compressed row %d: %v", at, err)
	}
	if _, err := io.ReadFull(z, data); err != nil {
		return true, corrupt("compressed row %d has less than its %d bytes: %v", at, len(data), err)
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return true, corrupt("compressed row %d has more than its %d bytes (%v)", at, len(data), err)
	}
	return true, nil
}
