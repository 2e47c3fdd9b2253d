// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Traces of PyTorch's profiler: the Chrome trace JSON of its library Kineto (output_json.cpp, 2026), one file per
// process, plain or in gzip. Kernels of NCCL have the times that CUPTI, or ROCm's tracer, gave them in host time. They
// have the arguments of the operation "record_param_comms" that called them, and its number as "External id"; they
// share "correlation" with the call that launched them. Times are microseconds since baseTimeNanoseconds.
type (
	torchEvent struct {
		Phase    string     `json:"ph"`
		Category string     `json:"cat"`
		Name     string     `json:"name"`
		PID      torchPlace `json:"pid"`
		TID      torchPlace `json:"tid"`
		Time     micros     `json:"ts"`
		Took     micros     `json:"dur"`
		Args     torchArgs  `json:"args"`
	}
	// torchArgs are what PyTorch says of an operation. Ranks are those of the world; Group and Description are the
	// names of its process group.
	torchArgs struct {
		External    int64  `json:"External id"`
		Correlation int64  `json:"correlation"`
		Device      *int   `json:"device"`
		Stream      uint64 `json:"stream"`

		Function    string  `json:"Collective name"`
		In          uint64  `json:"In msg nelems"`
		Out         uint64  `json:"Out msg nelems"`
		Type        string  `json:"dtype"`
		Group       string  `json:"Process Group Name"`
		Description string  `json:"Process Group Description"`
		Ranks       string  `json:"Process Group Ranks"`
		Size        int     `json:"Group size"`
		Start       *int    `json:"Global rank start"`
		Stride      int     `json:"Global rank stride"`
		Rank        *int    `json:"Rank"` // of calls: the root, in the group, where there is one
		Source      *int    `json:"Src Rank"`
		Destination *int    `json:"Dst Rank"`
		Number      *uint64 `json:"Seq"` // counts the operations of a group from 1, messages by themselves
	}
	torchInfo struct {
		Rank   *int          `json:"rank"`
		World  int           `json:"world_size"`
		Groups []torchConfig `json:"pg_config"`
	}
	torchConfig struct {
		Name        string     `json:"pg_name"`
		Description string     `json:"pg_desc"`
		Size        int        `json:"pg_size"`
		Ranks       torchRanks `json:"ranks"`
	}
)

// torchPlace is the number of a process, thread or stream; rows of other kinds have names there.
type torchPlace int64

// UnmarshalJSON reads numbers; names are −1.
func (p *torchPlace) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		v = -1
	}
	*p = torchPlace(v)
	return nil
}

// torchRanks are the ranks of a group: a list, or one as text. It is nil if it was shortened ("[0, 1, ...]"), or is
// damaged.
type torchRanks []int

// UnmarshalJSON reads both.
func (r *torchRanks) UnmarshalJSON(b []byte) error {
	*r = parseRanks(strings.Trim(string(b), `"`))
	return nil
}

// parseRanks returns the ranks of a list in text; nil if it is empty, was shortened, or has impossible ranks.
func parseRanks(text string) (ranks []int) {
	if json.Unmarshal([]byte(text), &ranks) != nil || len(ranks) == 0 || len(ranks) > description.MaxRanks {
		return nil
	}
	sorted := slices.Sorted(slices.Values(ranks))
	if sorted[0] < 0 || sorted[len(sorted)-1] >= description.MaxRanks || len(slices.Compact(sorted)) < len(ranks) {
		return nil
	}
	return ranks
}

// torchTrace is what is kept of a trace.
type torchTrace struct {
	profile
	info     torchInfo
	kernels  []torchCall               // of NCCL
	calls    map[int64]*torchCall      // operations "record_param_comms", by their numbers
	launches map[int64]timeSpan        // by correlation
	groups   map[string]*profiledGroup // by names and ranks
	listed   int                       // ranks of these groups
}

// torchCall is an event with its arguments.
type torchCall struct {
	timeSpan
	args torchArgs
}

// isTorchTrace reports whether a file begins like a trace of PyTorch's profiler, in gzip or not: an object with one of
// the keys of such traces.
func isTorchTrace(path string) bool {
	file, content, err := openTrace(path)
	if err != nil {
		return false // whoever reads the file says what is wrong with it
	}
	defer file.Close()
	begin, _ := io.ReadAll(io.LimitReader(content, 64<<10))
	return bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{")) && slices.ContainsFunc(torchKeys,
		func(key string) bool { return bytes.Contains(begin, []byte(key)) })
}

var torchKeys = []string{`"schemaVersion"`, `"traceEvents"`, `"deviceProperties"`, `"baseTimeNanoseconds"`}

// gzipMagic begins files in gzip.
const gzipMagic = "\x1f\x8b"

// openTrace opens a file, and unpacks it if it is in gzip.
func openTrace(path string) (file *os.File, content io.Reader, err error) {
	file, err = regular.Open(path)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(file, 256<<10)
	content = r
	if magic, _ := r.Peek(2); string(magic) == gzipMagic {
		size := int64(0)
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
		content, err = regular.Gunzip(r, size)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, content, nil
}

// readTrace reads a trace, to be written when all have been read. Damaged ones are not used: they could lack any call.
func (im *importer) readTrace(path string) error {
	im.result.Lines++
	t := &torchTrace{calls: make(map[int64]*torchCall), launches: make(map[int64]timeSpan),
		groups: make(map[string]*profiledGroup), profile: profile{path: path, rank: -1, seen: profileSeen{device: -1},
			from: description.FromTorch, lacks: torchLacks, names: make(map[string]uint32)}}
	file, content, err := openTrace(path)
	if err == nil {
		err = t.read(content)
		file.Close()
	}
	if err == nil {
		err = t.identify(im)
	}
	im.addProfiles(path, err, &t.profile)
	return nil
}

// valueReader bounds how much is read for one value.
type valueReader struct {
	in   io.Reader
	left int
}

func (r *valueReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.left -= n; r.left < 0 {
		return 0, fmt.Errorf("a value in it is %w", regular.ErrTooLarge)
	}
	return n, err
}

// read reads the trace event by event, and keeps those that are about NCCL.
func (t *torchTrace) read(content io.Reader) error {
	bound := &valueReader{content, maxProfileValue}
	d := json.NewDecoder(bound)
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	var value json.RawMessage
	for d.More() {
		bound.left = maxProfileValue
		key, err := d.Token()
		if err != nil {
			return damaged(d, err)
		}
		if key == "traceEvents" {
			if err := expect(d, json.Delim('[')); err != nil {
				return err
			}
			for d.More() {
				bound.left = maxProfileValue
				if err := d.Decode(&value); err != nil {
					return damaged(d, err)
				}
				if t.addEvent(value); len(t.kernels) > maxProfileRows {
					return fmt.Errorf("more than %d kernels of NCCL: profile fewer steps", maxProfileRows)
				}
			}
			if err := expect(d, json.Delim(']')); err != nil {
				return err
			}
			continue
		}
		if err := d.Decode(&value); err != nil {
			return damaged(d, err)
		}
		switch key {
		case "distributedInfo":
			err = json.Unmarshal(value, &t.info)
		case "baseTimeNanoseconds":
			err = json.Unmarshal(value, &t.base)
		case "deviceProperties":
			var all [maxProfileDevices]struct{ ID *int }
			err = json.Unmarshal(value, &all)
			t.devices = slices.IndexFunc(all[:], func(d struct{ ID *int }) bool { return d.ID == nil })
		}
		if err != nil {
			return fmt.Errorf("%v: %w", key, err)
		}
	}
	return expect(d, json.Delim('}'))
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return damaged(d, err)
	}
	if got != want {
		return fmt.Errorf("no trace of PyTorch's profiler: %v at byte %d in place of %v", got, d.InputOffset(), want)
	}
	return nil
}

// damaged says where a trace is damaged, or that it is not whole.
func damaged(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends at byte %d in the middle: copy it again, or profile again and let the profiler end",
			d.InputOffset())
	}
	return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
}

// addEvent adds an event if it is about NCCL: an operation that calls it, a launch of any kernel, or a kernel of it.
func (t *torchTrace) addEvent(text []byte) {
	if !slices.ContainsFunc(torchMarks, func(mark []byte) bool { return bytes.Contains(text, mark) }) {
		return
	}
	var e torchEvent
	if err := json.Unmarshal(text, &e); err != nil {
		t.seen.unreadable++
		return
	}
	a := &e.Args
	span := timeSpan{e.Time.ns, e.Time.ns + max(e.Took.ns, 0), int32(min(max(e.TID, 0), math.MaxInt32))}
	switch {
	case e.Phase != "X" || !e.Time.known:
	case min(span.begin, span.end) < 0 || span.end > maxSpan || max(a.In, a.Out, valueOr(a.Number, 0)) > maxOrdinal:
		t.seen.unreadable++
	case strings.EqualFold(e.Category, "kernel") && cuda.IsNCCLKernel(e.Name):
		if a.Device != nil && *a.Device >= 0 && *a.Device < maxDevices {
			t.seen.device = *a.Device
		}
		t.kernels = append(t.kernels, torchCall{span, *a})
	case strings.EqualFold(e.Category, "kernel"):
		t.addWork(e.Name, a.Stream, span)
	case max(len(t.calls), len(t.launches)) >= maxProfileRows:
		t.seen.surplus++
	case e.Name == torchCallName && a.External != 0:
		t.calls[a.External] = &torchCall{span, *a}
		t.seen.pid = int(max(e.PID, 0))
	case a.Correlation != 0 && strings.HasPrefix(e.Category, "cuda_") && strings.Contains(e.Name, "Launch"):
		t.launches[a.Correlation] = span
	}
}

const torchCallName = "record_param_comms"

// torchMarks are in every event that may be kept.
var torchMarks = [][]byte{[]byte(torchCallName), []byte("Launch"), []byte(`"kernel"`), []byte(`"Kernel"`)}

func valueOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

// torchRankName matches the rank in a trace's name: rank-3.pt.trace.json.gz, trace_rank3.json.
var torchRankName = regexp.MustCompile(`(?i)rank[-_. ]?(\d{1,6})`)

// identify finds the trace's rank, and its operations.
func (t *torchTrace) identify(im *importer) error {
	if len(t.kernels) == 0 {
		why := "has no kernels of NCCL: its ranks did not communicate by NCCL while it was profiled, or by " +
			"another library; profile whole steps"
		if len(t.work.kernels) == 0 {
			why = "has no kernels of GPUs: profile with ProfilerActivity.CUDA (and CPU), on ranks that use NCCL"
		}
		return &uselessTrace{why}
	}
	t.joinCalls()
	if len(t.operations) == 0 {
		return &uselessTrace{fmt.Sprintf("does not say which process groups its %d kernels of NCCL are of: newer "+
			"PyTorch writes it (\"Process Group Name\"), for calls that were profiled, too (ProfilerActivity.CPU), "+
			"and not from graphs", t.seen.nameless+t.seen.before)}
	}
	name := torchRankName.FindAllStringSubmatch(filepath.Base(t.path), -1)
	switch {
	case t.info.Rank != nil:
		t.rank = *t.info.Rank
	case len(name) == 1:
		t.rank, _ = strconv.Atoi(name[0][1])
		im.problem("%s does not say its rank (distributedInfo): it is taken to be %d, by the file's name", t.path,
			t.rank)
	default:
		return errors.New("a trace of an unknown rank, as it has no distributedInfo: give the file a name with it, " +
			"such as rank-0.json")
	}
	if t.base < 0 || t.base > maxSpan {
		return fmt.Errorf("baseTimeNanoseconds %d is no time of a real-time clock", t.base)
	}
	t.world = t.info.World
	if t.rank < 0 || t.rank >= description.MaxRanks || t.info.World > description.MaxRanks {
		return fmt.Errorf("a trace of rank %d of %d: jobs have at most %d ranks", t.rank, t.info.World,
			description.MaxRanks)
	}
	return nil
}
