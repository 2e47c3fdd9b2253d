// SPDX-License-Identifier: Apache-2.0

package powercut

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Record is what programs did below a folder.
type Record struct {
	root    string
	calls   []call
	Moments int // cuts can be made at 0 … Moments
}

// Read reads a file that [Command] has written, of what was done below the folder root.
func Read(file, root string) (*Record, error) {
	calls, err := readTrace(file)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(calls, func(a, b call) int { return a.end - b.end })
	return &Record{root: filepath.Clean(root), calls: calls, Moments: len(calls)}, nil
}

// inode is a file or a folder.
type inode struct {
	folder bool
	data   []byte   // with all that was written
	writes []change // to a file
	pos    int64    // where the next write without offset goes
	synced int      // the line at which the last fsync began that has returned
}

// change is one of a file's content: bytes at an offset, or another size.
type change struct {
	line int
	off  int64
	data []byte
	size int64 // −1: data counts
}

// naming is a change of names, which happens as a whole.
type naming struct {
	line    int
	add     string // path; "": none
	at      *inode
	remove  string
	folders []*inode // whose names change
}

// Disk is what was done up to a moment.
type Disk struct {
	root    string
	names   map[string]*inode // as programs see them
	namings []naming
	skip    func(call, path string) bool
}

// At replays the record up to a moment. The calls that skip (nil: none) is true for bring nothing to the disk: to see
// that somebody notices.
func (r *Record) At(moment int, skip func(call, path string) bool) (*Disk, error) {
	d := &Disk{root: r.root, names: map[string]*inode{r.root: {folder: true}}, skip: skip}
	for i := range r.calls[:moment] {
		if err := d.do(&r.calls[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Each calls f at each moment with the call that is over then, its path, and what programs see.
func (r *Record) Each(f func(moment int, call, path string, d *Disk)) error {
	d := &Disk{root: r.root, names: map[string]*inode{r.root: {folder: true}}}
	for i := range r.calls {
		c := &r.calls[i]
		path := ""
		if len(c.args) > 0 {
			path = c.descriptor(0)
		}
		if strings.HasPrefix(c.name, "rename") {
			path = d.target(c)
		}
		if err := d.do(c); err != nil {
			return err
		}
		f(i+1, c.name, path, d)
	}
	return nil
}

// Between counts the files that were renamed to one path between the first sync of a file or folder below another, and
// the time at which something had been renamed to a third.
func (r *Record) Between(renamed, synced, end string) (n int) {
	began, counted := false, 0
	for i := range r.calls {
		c := &r.calls[i]
		switch path := c.descriptor(0); {
		case strings.HasSuffix(c.name, "sync"):
			began = began || strings.HasPrefix(path, synced)
		case c.name == "renameat" && c.at(2, 3) == renamed && began:
			counted++
		case c.name == "renameat" && c.at(2, 3) == end:
			n, began, counted = n+counted, false, 0
		}
	}
	return n
}

func (d *Disk) target(c *call) string {
	if c.name == "rename" {
		return c.text(1)
	}
	return c.at(2, 3)
}

// Content is what programs read in a file.
func (d *Disk) Content(path string) ([]byte, bool) {
	n := d.names[path]
	if n == nil {
		return nil, false
	}
	return n.data, true
}

func (d *Disk) below(path string) bool { return strings.HasPrefix(path, d.root+"/") }

func (d *Disk) parent(path string) *inode { return d.names[filepath.Dir(path)] }

// name gives an inode a name, and takes another away.
func (d *Disk) name(line int, add string, at *inode, remove string) {
	n := naming{line: line, add: add, at: at, remove: remove}
	for _, path := range []string{add, remove} {
		if p := d.parent(path); path != "" && p != nil && !slices.Contains(n.folders, p) {
			n.folders = append(n.folders, p)
		}
	}
	d.namings = append(d.namings, n)
	apply(d.names, n)
}

func apply(names map[string]*inode, n naming) {
	below := make(map[string]*inode) // of a folder that is moved
	if n.remove != "" {
		for path, in := range names {
			if rest, ok := strings.CutPrefix(path, n.remove+"/"); ok {
				below[rest] = in
				delete(names, path)
			}
		}
		delete(names, n.remove)
	}
	if n.add != "" {
		names[n.add] = n.at
		for rest, in := range below {
			names[n.add+"/"+rest] = in
		}
	}
}

func (d *Disk) write(line int, path string, off int64, data []byte) {
	n := d.names[path]
	if n == nil || n.folder {
		return // of another folder, or one that has no name any more
	}
	if off < 0 {
		off = n.pos
		n.pos += int64(len(data))
	}
	c := change{line: line, off: off, data: data, size: -1}
	n.writes = append(n.writes, c)
	n.data = c.apply(n.data)
}

func (c *change) apply(data []byte) []byte {
	if c.size >= 0 {
		if c.size < int64(len(data)) {
			return data[:c.size:c.size]
		}
		return append(slices.Clip(data), make([]byte, c.size-int64(len(data)))...)
	}
	if end := c.off + int64(len(c.data)); end > int64(len(data)) {
		data = append(slices.Clip(data), make([]byte, end-int64(len(data)))...)
	}
	copy(data[c.off:], c.data)
	return data
}

func (d *Disk) do(c *call) error {
	switch c.name {
	case "openat":
		path := c.path
		flags := c.args[2]
		if !d.below(path) {
			return nil
		}
		n := d.names[path]
		if n == nil && strings.Contains(flags, "O_CREAT") {
			n = new(inode)
			d.name(c.end, path, n, "")
		}
		if n != nil && strings.Contains(flags, "O_TRUNC") {
			d.resize(c.end, n, 0)
		}
		if n != nil && !n.folder {
			n.pos = 0
			if strings.Contains(flags, "O_APPEND") {
				n.pos = int64(len(n.data))
			}
		}
	case "open", "creat":
		if d.below(c.path) {
			return fmt.Errorf("%s of %s: this package knows openat only", c.name, c.path)
		}
	case "write":
		d.write(c.end, c.descriptor(0), -1, []byte(c.text(1))[:c.result])
	case "pwrite64":
		d.write(c.end, c.descriptor(0), c.number(3), []byte(c.text(1))[:c.result])
	case "copy_file_range", "sendfile":
		from, to := c.descriptor(0), 2
		if c.name == "sendfile" {
			from, to = c.descriptor(1), 0
		}
		if path := c.descriptor(to); d.below(path) {
			in, out := d.names[from], d.names[path]
			if in == nil || out == nil {
				return fmt.Errorf("%s from %s to %s: not recorded", c.name, from, path)
			}
			d.write(c.end, path, -1, slices.Clone(in.data[out.pos:out.pos+c.result]))
		}
	case "ftruncate":
		if n := d.names[c.descriptor(0)]; n != nil && d.below(c.descriptor(0)) {
			d.resize(c.end, n, c.number(1))
		}
	case "mkdirat":
		if path := c.at(0, 1); d.below(path) {
			d.name(c.end, path, &inode{folder: true}, "")
		}
	case "unlinkat":
		if path := c.at(0, 1); d.below(path) {
			d.name(c.end, "", nil, path)
		}
	case "linkat":
		if from, to := c.at(0, 1), c.at(2, 3); d.below(to) {
			d.name(c.end, to, d.names[from], "")
		}
	case "renameat":
		if from, to := c.at(0, 1), c.at(2, 3); d.below(to) {
			d.name(c.end, to, d.names[from], from)
		}
	case "fsync", "fdatasync":
		path := c.descriptor(0)
		if n := d.names[path]; n != nil && (d.skip == nil || !d.skip(c.name, path)) {
			n.synced = max(n.synced, c.begin)
		}
	case "fallocate": // of memory
	default:
		for i := range c.args {
			if path := c.descriptor(i); d.below(path) || strings.HasPrefix(c.args[i], `"`) && d.below(c.text(i)) {
				return fmt.Errorf("%s of %s: this package does not know the call", c.name, path)
			}
		}
	}
	return nil
}

func (d *Disk) resize(line int, n *inode, size int64) {
	c := change{line: line, size: size}
	n.writes = append(n.writes, c)
	n.data = c.apply(n.data)
}

// Luck says what becomes of what was not synced.
type Luck int

// Cases; beside Chance the ones that are most usual, and the worst.
const (
	Chance   Luck = iota // any of it
	Nothing              // none of it
	NoData               // all names, and sizes without data: a journal of metadata
	Journal              // names up to some moment in their order, and of data any
	AllNames             // and no data
	lucks
)

// RandomLuck is any.
func RandomLuck(r *rand.Rand) Luck { return Luck(r.IntN(int(lucks))) }

// Cut puts what is on the disk after a power cut into a folder, which must be empty.
func (d *Disk) Cut(to string, luck Luck, r *rand.Rand) error {
	names := map[string]*inode{d.root: d.names[d.root]}
	until := 0
	if luck == Journal && len(d.namings) > 0 {
		until = d.namings[r.IntN(len(d.namings))].line
	}
	for _, n := range d.namings {
		durable := slices.ContainsFunc(n.folders, func(f *inode) bool { return f.synced > n.line })
		switch luck {
		case Chance:
			durable = durable || r.IntN(2) == 0
		case NoData, AllNames:
			durable = true
		case Journal:
			durable = durable || n.line <= until
		}
		if durable {
			apply(names, n)
		}
	}
	paths := make([]string, 0, len(names))
	for path := range names {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	written := make(map[*inode]string)
	for _, path := range paths {
		rest := strings.TrimPrefix(path, d.root)
		n := names[path]
		if rest == "" || names[filepath.Dir(path)] == nil || n == nil { // nothing leads there
			if rest != "" {
				delete(names, path)
			}
			continue
		}
		target := filepath.Join(to, rest)
		var err error
		switch first := written[n]; {
		case n.folder:
			err = os.Mkdir(target, 0o700)
		case first != "":
			err = os.Link(first, target)
		default:
			written[n] = target
			err = os.WriteFile(target, n.after(luck, r), fs.FileMode(0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// after is what a file holds after the cut.
func (n *inode) after(luck Luck, r *rand.Rand) (data []byte) {
	kind := r.IntN(4)
	for _, c := range n.writes {
		durable, sized := c.line < n.synced, false
		switch {
		case durable:
		case luck == NoData:
			sized = true
		case luck == Nothing || luck == AllNames:
		case kind == 0: // none
		case kind == 1: // all
			durable = true
		case kind == 2:
			durable = r.IntN(2) == 0
		default:
			durable, sized = r.IntN(2) == 0, r.IntN(2) == 0
		}
		switch end := c.off + int64(len(c.data)); {
		case durable:
			data = c.apply(data)
		case sized && c.size < 0 && end > int64(len(data)):
			data = (&change{size: end}).apply(data)
		}
	}
	return data
}
