// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// JSONL of accl-profiler, a plugin of RCCL (plugins/profiler/accl of rocm-systems, 2026): one file per communicator
// rank, with an object per collective that breaks down its duration, and a summary of dropped collectives at the end.
// Durations are microseconds with decimals. When operations ran is given only in ticks of each GPU. The file's name
// contains rank, host, process and the communicator's hash.
type acclLine struct {
	Header *struct {
		acclPlace
	} `json:"header"`
	Coll    *acclColl    `json:"coll_perf"`
	Summary *acclSummary `json:"summary"`
	acclColl
	acclPlace
}

type acclPlace struct {
	Rank  *int   `json:"rank"`
	Ranks int    `json:"n_ranks"`
	Hash  string `json:"comm_hash"` // "": it is in the file's name
	Host  string `json:"hostname"`
	PID   int    `json:"pid"`
}

type acclColl struct {
	inspectorColl
	Channels int `json:"coll_n_channels"`
}

// acclSummary counts what the plugin dropped, and what was incomplete when the communicator ended.
type acclSummary struct {
	Dropped uint64 `json:"dropped_collectives"`
	Leaked  uint64 `json:"leaked_collectives"`
}

// acclName matches the name of a file. Early versions had no process and no hash.
var acclName = regexp.MustCompile(`accl[-_]profiler_rank(\d+)_(.+?)(?:_pid(\d+)_0x([0-9a-fA-F]+))?\.jsonl?$`)

// acclFile is the content of a file's name.
type acclFile struct {
	path, host, hash string
	rank, pid        int
	ranks            int // of the last line that stated it
}

func newACCLFile(path string) *acclFile {
	f := &acclFile{path: path, rank: -1}
	if m := acclName.FindStringSubmatch(filepath.Base(path)); m != nil {
		f.host, f.hash = m[2], m[4]
		f.rank, _ = strconv.Atoi(m[1])
		f.pid, _ = strconv.Atoi(m[3])
	}
	return f
}

// acclLacks lists what such data does not contain.
var acclLacks = []string{
	"calls", "kernel launches", "messages", "element types", "roots", "GPUs", "date and time of day",
	"collectives below the least size",
	"what operations' times are made of, as rows (decomposition)",
}

// addACCL adds a line of accl-profiler.
func (in *input) addACCL(text []byte) error {
	if in.accl == nil {
		in.accl = newACCLFile(in.path)
	}
	f := in.accl
	var l acclLine
	if err := decode(text, &l); err != nil {
		return err
	}
	place, coll := l.acclPlace, &l.acclColl
	if l.Header != nil {
		place = l.Header.acclPlace
	}
	if l.Coll != nil {
		coll = l.Coll
	}
	rank := f.rank
	if place.Rank != nil {
		rank = *place.Rank
	}
	f.ranks = cmp.Or(place.Ranks, f.ranks)
	hash := strings.TrimPrefix(cmp.Or(place.Hash, f.hash), "0x")
	id, err := strconv.ParseUint(cmp.Or(hash, "0"), 16, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not the hash of a communicator", hash)
	}
	k := inspectedKey{host: cmp.Or(place.Host, f.host, units.UnknownHost), pid: cmp.Or(place.PID, f.pid)}
	if k.pid == 0 {
		k.path = f.path
	}
	of := in.inspectorOf(k, "JSONL of accl-profiler", acclLacks)
	if l.Summary != nil {
		dropped := l.Summary.Dropped + min(l.Summary.Leaked, maxOrdinal)
		of.setDropped(&inspectorHeader{ID: fmt.Sprintf("%#x", id), Rank: rank, Ranks: f.ranks}, minTime,
			inspectorStats{Coll: dropped})
		return nil
	}
	switch {
	case coll.Function == "":
		return errors.New("an operation without name")
	case rank < 0 || f.ranks < 1 || rank >= f.ranks:
		return fmt.Errorf("rank %d of %d", rank, f.ranks)
	case f.ranks > description.MaxRanks:
		return tooManyRanks(f.ranks)
	case coll.Took.value > maxMicros:
		return errors.New("an operation that takes centuries")
	case coll.Number > maxOrdinal:
		return errors.New("an operation whose number no job reaches")
	}
	s := sample{
		header: inspectorHeader{ID: fmt.Sprintf("%#x", id), Rank: rank, Ranks: f.ranks}, id: id,
		function: coll.Function, number: uint64(coll.Number), size: uint64(coll.Size),
		algo: known(coll.Algo), proto: known(coll.Proto),
	}
	if coll.Channels > 0 && coll.Channels < 256 {
		s.channels = uint8(coll.Channels)
	}
	s.setDuration(coll.Took)
	of.samples = append(of.samples, s)
	return nil
}
