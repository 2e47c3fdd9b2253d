// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Profile is a profile that was opened. It is for one goroutine.
type Profile struct {
	Definitions
	// Version is that of the format, "4.4" for instance.
	Version string

	path     string
	file     io.Closer
	members  []member
	tree     *forest // in the order of the file
	rows     map[MetricKind][]uint32
	severity []*severity // by metric; nil for metrics without values
	unread   []error     // by metric: why its values cannot be read, nil if they can
	names    []string    // of the metrics' data members
}

// File is a member of a profile.
type File struct {
	Name string
	Size int64 // bytes
}

// Open opens the profile path.
func Open(path string) (*Profile, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	var p *Profile
	info, err := f.Stat()
	if err == nil {
		p, err = read(f, info.Size(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.file = f
	return p, nil
}

// Read opens a profile of size bytes that lies in r.
func Read(r io.ReaderAt, size int64) (*Profile, error) { return read(r, size, "") }

func read(r io.ReaderAt, size int64, path string) (*Profile, error) {
	p := &Profile{path: path}
	var err error
	if p.members, err = scanTar(r, size); err != nil {
		return nil, p.failed("", err)
	}
	anchor, ok := p.member(memberAnchor)
	if !ok {
		return nil, p.failed("", corrupt("there is no %s: this is no profile", memberAnchor))
	}
	text, err := anchorText(anchor)
	if err != nil {
		return nil, p.failed(memberAnchor, err)
	}
	ids, err := p.parseAnchor(text)
	if err != nil {
		return nil, p.failed(memberAnchor, err)
	}
	p.rows = make(map[MetricKind][]uint32)
	for _, kind := range []MetricKind{Exclusive, Inclusive} {
		numbers := make([]uint32, len(p.Cnodes))
		for number, c := range p.tree.rowOrder(kind) {
			numbers[c] = uint32(number)
		}
		p.rows[kind] = numbers
	}
	p.rows[Simple] = p.rows[Inclusive] // as reference readers take them
	p.openValues(ids)
	return p, nil
}

// maxAnchor bounds the size of an anchor: trees of a million call paths need a tenth.
const maxAnchor = 1 << 30

// anchorText reads the anchor, which may be compressed.
func anchorText(anchor section) ([]byte, error) {
	if anchor.size > maxAnchor {
		return nil, corrupt("%d bytes", anchor.size)
	}
	b, err := anchor.read(0, anchor.size)
	if err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, err
	}
	z, err := regular.Gunzip(bytes.NewReader(b), anchor.size)
	if err != nil {
		return nil, corrupt("compressed: %v", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, corrupt("compressed: %v", err)
	}
	return text, nil
}

// openValues looks at index and data of each metric, whose ids in the file are ids.
func (p *Profile) openValues(ids []int) {
	p.severity = make([]*severity, len(p.Metrics))
	p.unread = make([]error, len(p.Metrics))
	p.names = make([]string, len(p.Metrics))
	for i := range p.Metrics {
		p.severity[i], p.unread[i] = p.openMetric(MetricID(i), memberPrefix(ids[i], p.Metrics[i].Hidden))
	}
}

// openMetric looks at the values of a metric; nil if it has none.
func (p *Profile) openMetric(id MetricID, name string) (*severity, error) {
	m := &p.Metrics[id]
	p.names[id] = name + suffixData
	indexMember, hasIndex := p.member(name + suffixIndex)
	data, hasData := p.member(name + suffixData)
	l, known := m.Type.layout()
	switch {
	case m.Kind.Derived():
		return nil, p.failed(name+suffixData, unsupported(
			"metric %q is %s: only stored numbers are read", m.UniqueName, m.Kind))
	case !hasIndex && !hasData:
		if !known {
			return nil, p.failed(name+suffixData, unsupported("metric %q is of type %q", m.UniqueName, string(m.Type)))
		}
		return nil, nil
	case hasIndex != hasData:
		return nil, p.failed(name+suffixData, corrupt(
			"values of metric %q without %s or the other way round: readers take them for zeros", m.UniqueName,
			suffixIndex))
	case !known:
		return nil, p.failed(name+suffixData, unsupported(
			"values of metric %q are of type %q", m.UniqueName, string(m.Type)))
	}
	b, err := indexMember.read(0, indexMember.size)
	if err != nil {
		return nil, p.failed(name+suffixIndex, err)
	}
	x, err := readIndex(b, len(p.Cnodes))
	if err != nil {
		return nil, p.failed(name+suffixIndex, err)
	}
	s, err := openSeverity(x, data, int64(l.size)*int64(len(p.Locations)), len(p.Cnodes))
	if err != nil {
		return nil, p.failed(name+suffixData, err)
	}
	return s, nil
}

func (p *Profile) failed(member string, err error) error {
	return &FormatError{File: p.path, Member: member, Err: err}
}

// member finds the last member of a name, as readers do.
func (p *Profile) member(name string) (section, bool) {
	for i := len(p.members) - 1; i >= 0; i-- {
		if p.members[i].name == name {
			return p.members[i].section, true
		}
	}
	return section{}, false
}

// Files lists the members in their order.
func (p *Profile) Files() []File {
	list := make([]File, len(p.members))
	for i, m := range p.members {
		list[i] = File{m.name, m.size}
	}
	return list
}

// ReadFile returns the content of a member.
func (p *Profile) ReadFile(name string) ([]byte, error) {
	s, ok := p.member(name)
	if !ok {
		return nil, p.failed(name, os.ErrNotExist)
	}
	b, err := s.read(0, s.size)
	if err != nil {
		return nil, p.failed(name, err)
	}
	return b, nil
}

// Row reads the values of a metric at a cnode into row, which is made to fit. If none are stored there, stored is false
// and row has what stands for no values. Derived metrics have no rows: [ErrNotSupported].
func (p *Profile) Row(m MetricID, c CnodeID, row *Row) (stored bool, err error) {
	if m < 0 || int(m) >= len(p.Metrics) || c < 0 || int(c) >= len(p.Cnodes) {
		return false, invalid("there is no metric %d at cnode %d: %d and %d are defined", m, c, len(p.Metrics),
			len(p.Cnodes))
	}
	if err := p.unread[m]; err != nil {
		return false, err
	}
	metric := &p.Metrics[m]
	if row.metric != metric || row.Locations() != len(p.Locations) {
		*row = *newRow(metric, len(p.Locations))
	}
	s := p.severity[m]
	if s == nil {
		row.clear()
		return false, nil
	}
	stored, err = s.readRow(p.rows[metric.Kind][c], row.data)
	switch {
	case err != nil:
		return false, p.failed(p.names[m], err)
	case !stored:
		row.clear()
	case s.index.order.String() == "BigEndian":
		row.layout.swap(row.data)
	}
	return stored, nil
}

// Walk goes through the call tree depth first, in the order of the file; depth is 0 for roots.
func (p *Profile) Walk(visit func(c CnodeID, depth int)) {
	p.tree.walk(func(id int32, depth int) { visit(CnodeID(id), depth) }, func(int32) {})
}

// Close closes the file.
func (p *Profile) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
