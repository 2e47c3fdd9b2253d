// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// OtherTrace is a trace of another tool that is to be shown with an archive: of PyTorch's profiler or any other in
// trace-event JSON, or Perfetto's own format; gzip or not.
type OtherTrace struct {
	Path string
	Host string // where it was recorded
	// Shift is the offset in ns of the archive's times since 1970 from the host's real-time clock, measured when that
	// clock showed Middle, in the middle of the run.
	Shift, Middle int64
}

// Names of files in the tar file that Merged writes.
const (
	manifestName = "perfetto_manifest.json"
	oursName     = "nccl-otf2.pftrace"
)

// Merged writes a tar file that Perfetto shows as one trace: the archive's timeline (see Perfetto), other traces, and a
// manifest that says which host each is of, and how its clock is related to the archive's. Form of the manifest:
// https://perfetto.dev/docs/reference/perfetto-manifest, version 1, which trace_processor and the viewer know from
// release 58.2 on.
func Merged(a *otf2.Archive, to string, others []OtherTrace, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	if id, _ := e.rows.clock.perfettoClock(otf2.Timestamp(e.rows.clock.Offset)); id != clockRealtime {
		return nil,
			errors.New("the archive's times are not those of a real-time clock, which other traces could be related to")
	}
	folder, err := os.MkdirTemp("", "nccl-otf2-merged-")
	if err != nil {
		return nil, err
	}
	held := atomicfile.Temporary(folder)
	defer held.Forget()
	defer func() { _ = os.RemoveAll(folder) }()
	m := &merged{folder: folder, manifest: manifest{Version: 1,
		TraceTime: reference{File: oursName, Clock: "REALTIME"}}}
	if err := m.addFile(oursName, e.writePerfetto); err != nil {
		return nil, err
	}
	m.manifest.Files = append(m.manifest.Files, fileEntry{Path: oursName})
	for i := range others {
		if err := m.addTrace(&others[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", others[i].Path, err)
		}
	}
	if err := e.writeFile(to, nil, m.writeTar); err != nil {
		return nil, err
	}
	return &e.result, nil
}

// manifest and its parts use the names of Perfetto's schema.
type manifest struct {
	Version   int         `json:"version"`
	TraceTime reference   `json:"trace_time"`
	Files     []fileEntry `json:"files"`
}

type fileEntry struct {
	Path    string   `json:"path"`
	Machine *machine `json:"machine,omitempty"`
	Clocks  *clocks  `json:"clocks,omitempty"`
}

type machine struct {
	Name string `json:"name"`
}

// clocks relates a clock of a file to one of another. Without a Clock it is the file's only one, which showed TS when
// the other showed its TS.
type clocks struct {
	Clock  string    `json:"clock,omitempty"`
	TS     *int64    `json:"ts,omitempty"`
	Offset int64     `json:"offset_ns,omitempty"` // of the other clock to the file's
	Is     reference `json:"is"`
}

type reference struct {
	File  string `json:"file"`
	Clock string `json:"clock"`
	TS    *int64 `json:"ts,omitempty"`
}

// merged collects the files of the tar file in a folder.
type merged struct {
	folder   string
	names    []string
	manifest manifest
}

// addFile writes one of the files.
func (m *merged) addFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(m.folder, strconv.Itoa(len(m.names))))
	if err != nil {
		return err
	}
	m.names = append(m.names, name)
	b := bufio.NewWriterSize(f, 256<<10)
	return errors.Join(write(b), b.Flush(), f.Close())
}

// addTrace adds the trace of another tool.
func (m *merged) addTrace(b *OtherTrace) error {
	f, err := os.Open(b.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = bufio.NewReaderSize(f, 256<<10)
	if magic, _ := r.(*bufio.Reader).Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = bufio.NewReaderSize(z, 256<<10)
	}
	folder := regular.FileName(b.Host)
	name := path.Join(folder, strings.TrimSuffix(filepath.Base(b.Path), ".gz"))
	for _, taken := range m.names {
		if taken == name {
			name = path.Join(folder, fmt.Sprintf("%d-%s", len(m.names), path.Base(name)))
		}
	}
	var times traceTimes
	if err := m.addFile(name, func(w io.Writer) error { return times.copyTrace(w, r.(*bufio.Reader)) }); err != nil {
		return err
	}
	c, err := times.relateClocks(b)
	if err != nil {
		return err
	}
	m.manifest.Files = append(m.manifest.Files, fileEntry{name, &machine{b.Host}, c})
	return nil
}

// writeTar writes the tar file, beginning with the manifest.
func (m *merged) writeTar(w io.Writer) error {
	text, err := json.MarshalIndent(map[string]any{"perfetto_manifest": m.manifest}, "", "  ")
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	err = t.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = t.Write(text)
	}
	for i, name := range m.names {
		if err == nil {
			err = m.addToTar(t, name, filepath.Join(m.folder, strconv.Itoa(i)))
		}
	}
	return errors.Join(err, t.Close())
}

func (m *merged) addToTar(t *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// traceTimes finds the origin of a trace's times while the trace is copied.
type traceTimes struct {
	binary bool    // Perfetto's own format, which defines its clocks
	base   int64   // of PyTorch's profiler: ns since 1970 of time 0; 0: the trace has none
	first  float64 // time of the first event, µs; events at 0 are metadata
}

var (
	// PyTorch's profiler (Kineto) writes times relative to a base, which it writes before or after the events.
	baseTime  = regexp.MustCompile(`"baseTimeNanoseconds"\s*:\s*(\d{1,19})[^\d]`)
	eventTime = regexp.MustCompile(`"ts"\s*:\s*"?([\d.eE+]{1,32})[^\d.eE+]`)
)

// beforeText is the part of a block that is scanned again with the next one.
const beforeText = 128

func (t *traceTimes) copyTrace(w io.Writer, r *bufio.Reader) error {
	head, err := r.Peek(1)
	if err != nil {
		return errors.New("it is empty")
	}
	switch {
	case head[0] == 0x0a:
		t.binary = true
	case !bytes.ContainsAny(head, "{[ \t\r\n\xef"):
		return errors.New("it is neither trace-event JSON nor Perfetto's own format")
	}
	block := make([]byte, 0, 1<<20+beforeText)
	for {
		n, err := io.ReadFull(r, block[len(block):cap(block)])
		block = block[:len(block)+n]
		if _, err := w.Write(block[len(block)-n:]); err != nil {
			return err
		}
		if !t.binary {
			t.scanBlock(block)
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		block = append(block[:0], block[len(block)-beforeText:]...)
	}
}

func (t *traceTimes) scanBlock(block []byte) {
	if m := baseTime.FindSubmatch(block); t.base == 0 && m != nil {
		t.base, _ = strconv.ParseInt(string(m[1]), 10, 64)
	}
	for at := block; t.first == 0; {
		m := eventTime.FindSubmatchIndex(at)
		if m == nil {
			return
		}
		t.first, _ = strconv.ParseFloat(string(at[m[2]:m[3]]), 64)
		at = at[m[3]:]
	}
}

// leastSince1970 is the least time of an event, µs, that is interpreted as a time since 1970: it is in 2001.
const leastSince1970 = 1e15

// relateClocks relates the trace's clock to the archive's.
func (t *traceTimes) relateClocks(b *OtherTrace) (*clocks, error) {
	ours := reference{File: oursName, Clock: "REALTIME"}
	if t.binary {
		return &clocks{Clock: "REALTIME", Offset: b.Shift, Is: ours}, nil
	}
	shows := int64(0)
	switch {
	case t.base != 0:
		ours.TS = new(t.base + b.Shift)
	case t.first >= leastSince1970:
		shows, ours.TS = b.Middle, new(b.Middle+b.Shift)
	default:
		return nil, errors.New(
			"it does not say what its times count from: there is no baseTimeNanoseconds, as PyTorch's profiler " +
				"writes it, and its events are not in µs since 1970")
	}
	return &clocks{TS: &shows, Is: ours}, nil
}
