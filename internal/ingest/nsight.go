// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// SQLite exports of Nsight Systems ("SQLite Schema Reference" in its documentation, schema 3.28): a file for each
// report, which may have several processes. Tables are there if they have rows, and columns differ between releases.
// Times are ns since the session started. A globalTid is the number of the process and that of the thread in 24 bits
// each; a globalPid is the same without a thread.
var nsightTables = []wantedTable{
	{Name: "TARGET_INFO_SESSION_START_TIME", Columns: []string{"utcEpochNs", "systemClockNs"}},
	{Name: "TARGET_INFO_SYSTEM_ENV", Columns: []string{"name", "value"}},
	{Name: "NVTX_PAYLOAD_SCHEMA_ENTRIES", Columns: []string{"domainId", "schemaId", "name", "offset"}},
	{Name: "StringIds", Columns: []string{"id", "value"}},
	{Name: "CUPTI_ACTIVITY_KIND_KERNEL", Columns: []string{"start", "end", "globalPid", "deviceId", "streamId",
		"correlationId", "demangledName", "shortName"}},
	{Name: "CUPTI_ACTIVITY_KIND_RUNTIME", Columns: []string{"start", "end", "globalTid", "correlationId", "nameId"}},
	{Name: "NVTX_EVENTS", Columns: []string{"start", "end", "globalTid", "text", "textId", "jsonText", "jsonTextId",
		"binaryData"}},
}

// Places in nsightTables.
const (
	nsightSession = iota
	nsightSystem
	nsightSchema
	nsightStrings
	nsightKernels
	nsightRuntime
	nsightRanges
)

var nsightLacks = append([]string{"how ranks that the file does not have were doing"}, torchLacks...)

var nsightAdvice = uselessAdvice{
	kernels: "has no kernels of NCCL: record with `nsys profile -t cuda,nvtx`, on ranks that use NCCL",
	calls: "no NVTX ranges of NCCL, so it is not known which calls and communicators they are of: record with " +
		"`nsys profile -t cuda,nvtx`",
	comms: "their NVTX ranges do not say which communicators they are of: export with `nsys export --type sqlite " +
		"--include-blobs=true`; NCCL before 2.26 does not tell nsys",
	ranks: "it is not known who is in their communicators: let nsys record from the start of the job, when it makes " +
		"them (without --delay and --capture-range)",
}

// maxStringBytes bounds the texts that are kept of a file.
const maxStringBytes = 256 << 20

// nsightFile is a file that is being read.
type nsightFile struct {
	path      string
	strings   map[int64]string
	stored    int // bytes of strings
	fields    map[schemaKey][]schemaField
	processes map[int64]*tracedProcess // by globalPid
	order     []*tracedProcess
	host      string
	base      int64
	monotonic int64 // when the session began, on the host's clock that is not set; 0: not known
}

func newNsightFile(path string) *nsightFile {
	return &nsightFile{path: path, strings: make(map[int64]string), fields: make(map[schemaKey][]schemaField),
		processes: make(map[int64]*tracedProcess)}
}

// schemaKey is a type of NVTX's payloads; schemaField is one of its members.
type (
	schemaKey   struct{ domain, schema uint64 }
	schemaField struct {
		name   string
		offset int64
	}
)

// addRow adds a row. Those that are of no form that nsys writes count as unreadable.
func (f *nsightFile) addRow(row *tableRow) error {
	c := row.cells
	if c == nil {
		return f.checkColumns(row)
	}
	switch row.place {
	case nsightSession:
		f.base, f.monotonic = c[0].number, c[1].number
	case nsightSystem:
		if c[0].text == "Hostname" {
			f.host = c[1].text
		}
	case nsightSchema:
		key := schemaKey{uint64(c[0].number), uint64(c[1].number)}
		if len(f.fields[key]) < 64 && len(f.fields) < 4096 {
			f.fields[key] = append(f.fields[key], schemaField{c[2].text, c[3].number})
		}
	case nsightStrings:
		if f.stored += len(c[1].text) + 64; f.stored > maxStringBytes {
			return fmt.Errorf("its names take more than %d bytes", maxStringBytes)
		}
		f.strings[c[0].number] = c[1].text
	case nsightKernels:
		return f.addKernel(c)
	case nsightRuntime:
		name := f.strings[c[4].number]
		if p := f.processes[c[2].number&^threadMask]; p != nil && strings.Contains(name, "Launch") {
			p.addLaunch(c[3].number, timeSpan{c[0].number, c[1].number, int32(c[2].number & threadMask)})
		}
	case nsightRanges:
		f.addRange(c)
	}
	return nil
}

// threadMask are the bits of a globalTid that number the thread.
const threadMask = 1<<24 - 1

// checkColumns says what a table lacks without which nothing can be told.
func (f *nsightFile) checkColumns(row *tableRow) error {
	if row.place == nsightKernels && !row.hasColumn("globalPid") {
		return &uselessTrace{"does not say of which processes its kernels are: export it with a newer Nsight Systems"}
	}
	return nil
}

// processOf returns a process of the file.
func (f *nsightFile) processOf(id int64) *tracedProcess {
	return keyed.EntryMade(f.processes, id, func() *tracedProcess {
		p := newTraced(f.path, description.FromNsight, nsightLacks, &nsightAdvice)
		p.seen.pid = int(id >> 24 & threadMask)
		f.order = append(f.order, p)
		return p
	})
}

// addKernel adds a kernel.
func (f *nsightFile) addKernel(c []cell) error {
	if len(f.processes) >= maxProfileDevices && f.processes[c[2].number] == nil {
		return fmt.Errorf("it has kernels of more than %d processes", maxProfileDevices)
	}
	name := f.strings[c[6].number]
	if short := f.strings[c[7].number]; name == "" || cuda.IsNCCLKernel(short) {
		name = short
	}
	return f.processOf(c[2].number).addKernel(name, c[3].number, tracedKernel{stream: uint64(c[4].number),
		correlation: c[5].number, timeSpan: timeSpan{begin: c[0].number, end: c[1].number}})
}

// addRange adds an NVTX range if NCCL has made it.
func (f *nsightFile) addRange(c []cell) {
	function, isNCCL := strings.CutPrefix(cmp.Or(c[3].text, f.strings[c[4].number]), "nccl")
	p := f.processes[c[2].number&^threadMask]
	if !isNCCL || p == nil || !c[1].known || function == "" || function[0] < 'A' || function[0] > 'Z' {
		return
	}
	call := tracedCall{function: function, rank: -1, peer: -1, root: -1,
		timeSpan: timeSpan{c[0].number, c[1].number, int32(c[2].number & threadMask)}}
	payload := f.decodePayload(c[7].blob)
	if text := cmp.Or(c[5].text, f.strings[c[6].number]); text != "" {
		values := make(map[string]json.RawMessage)
		if json.Unmarshal([]byte(text), &values) != nil {
			p.seen.unreadable++
		}
		for name, value := range values {
			payload[name] = value
		}
	}
	if !call.addPayload(payload) {
		p.seen.unreadable++
	}
	p.addCall(&call)
}

// decodePayload returns the members of the payloads of a range, as numbers in text. Each has its domain, its type and
// its size in 8 bytes each, of which the first two may use 4 alone, then 8 bytes that are not used, then its members.
func (f *nsightFile) decodePayload(b []byte) map[string][]byte {
	const head = 32
	all := make(map[string][]byte)
	for len(b) >= head {
		word := binary.LittleEndian.Uint64
		key := schemaKey{uint64(uint32(word(b))), uint64(uint32(word(b[8:])))}
		size := word(b[16:])
		if size > uint64(len(b)-head) {
			break
		}
		members := b[head : head+size]
		for _, field := range f.fields[key] {
			width := int64(4)
			if field.name == payloadComm || field.name == payloadBytes {
				width = 8
			}
			if field.offset < 0 || field.offset > int64(size)-width {
				continue
			}
			value := make([]byte, 8)
			copy(value, members[field.offset:field.offset+width])
			all[field.name] = fmt.Append(nil, word(value))
		}
		b = b[head+size:]
	}
	return all
}

// Names of members of NCCL's payloads (nvtx_payload_schemas.h in NCCL).
const (
	payloadComm  = "NCCL communicator ID"
	payloadBytes = "Message size [bytes]"
	payloadSize  = "No. of ranks"
	payloadRank  = "Rank"
	payloadPeer  = "Peer rank"
	payloadRoot  = "Root"
)

// addPayload adds what a payload tells of a call. It returns false if that cannot be.
func (c *tracedCall) addPayload(values map[string][]byte) bool {
	fine := true
	number := func(name string, most uint64, to func(uint64)) {
		text, there := values[name]
		if !there {
			return
		}
		var v uint64
		if json.Unmarshal(text, &v) != nil || v > most {
			fine = false
			return
		}
		to(v)
	}
	number(payloadComm, math.MaxUint64, func(v uint64) { c.comm = v })
	number(payloadBytes, maxOrdinal, func(v uint64) { c.bytes = v })
	number(payloadSize, description.MaxRanks, func(v uint64) { c.size = int(v) })
	number(payloadRank, description.MaxRanks, func(v uint64) { c.rank = int(v) })
	number(payloadPeer, description.MaxRanks, func(v uint64) { c.peer = int(v) })
	number(payloadRoot, description.MaxRanks, func(v uint64) { c.root = int(v) })
	return fine
}

// closeFile returns the file's processes, with its clock.
func (f *nsightFile) closeFile(im *importer) ([]*tracedProcess, error) {
	if f.base < 0 || f.base > maxSpan || f.monotonic < 0 || f.monotonic > maxSpan {
		return nil, errors.New("the start of its session is no time of a clock")
	}
	for _, other := range im.traced { // two sessions on one host began at times of one clock that is never set
		if other.host == f.host && f.host != "" && other.monotonic > 0 && f.monotonic > 0 {
			f.base = other.base + f.monotonic - other.monotonic
			break
		}
	}
	for _, p := range f.order {
		p.host, p.base, p.monotonic = f.host, f.base, f.monotonic
	}
	if len(f.order) == 0 {
		return nil, &uselessTrace{nsightAdvice.kernels}
	}
	return f.order, nil
}
