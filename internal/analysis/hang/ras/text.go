// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The text that ncclras prints without -f json, and RAS before NCCL 2.28.7 always (src/ras/client_support.cc of NCCL
// 2.24 to 2.30). It has a summary with a row per group of communicators, and below "Errors" and "Warnings" a paragraph
// per communicator and kind of trouble. The text names the ranks in trouble if they are few, since 2.26 with their
// processes; of the others it only gives the number.

var (
	textVersion  = regexp.MustCompile(`^NCCL version (\S+)`)
	textGroup    = regexp.MustCompile(`^ *(\d+) +\d+ +\d+ +[\d-]+ +(\d+) +\d+ +[A-Z]+ +[A-Z,]+`)
	textHead     = regexp.MustCompile(`^#(\d+)-\d+ \(([0-9a-fA-F]{1,16})\) ([A-Z]+)`)
	textPlace    = regexp.MustCompile(`^ +Rank (\d+)\b.*managed by process (\d+) on node (\S+)`)
	textRank     = regexp.MustCompile(`^ +Rank (\d+)\b`)
	textList     = regexp.MustCompile(`^ +The missing ranks?: ([\d, -]+)$`)
	textFunction = regexp.MustCompile(`^ +Communicator ranks have different (\S+) operation counts`)
	textCount    = regexp.MustCompile(
		`^ +(?:\d+ ranks have|Rank \d+ has) (?:launched up to operation (\d+)|not launched any operations)`)
	textStatus  = regexp.MustCompile(`^ +(?:\d+ ranks have|Rank [\d,-]+ has) status ([A-Z]+)`)
	textError   = regexp.MustCompile(`^ +(?:\d+ ranks|Rank \d+) reported (.+?)(?: -- .*)?$`)
	textProcess = regexp.MustCompile(`^ +Process (\d+) on node (\S+)`)
)

// maxRanks limits the ranks of one communicator.
const maxRanks = 1 << 18

// resultNames maps RAS' names of results to ncclResult_t.
var resultNames = map[string]int{
	"Unhandled CUDA error": 1, "System error": 2, "Internal error": 3, "Invalid argument": 4, "Invalid usage": 5,
	"Remote process error":       6,
	"NCCL operation in progress": inProgress,
}

// maxTroubles is larger than the number of kinds of trouble, and than the number of functions.
const maxTroubles = 32

// textKey identifies a communicator.
type textKey struct {
	hash Hash
	size int
}

// textReader reads the text line by line.
type textReader struct {
	status *Status
	sizes  map[string]int // number of ranks of a communicator, by group
	index  map[textKey]int
	dead   map[Place]bool // processes that RAS considers dead, by PID and Host

	at       int    // index of this paragraph's communicator; −1: none
	kind     string // kind of trouble: "INCOMPLETE", "ERROR", "MISMATCH"; "DEAD" for processes
	function string // function whose counts differ; "": none
	count    uint64 // count of the ranks below
	counted  bool
	abort    bool   // the ranks below have an abort flag
	result   string // result that the ranks below reported
	async    bool
}

// parseText reads the text form. It returns an error if text has another form.
func parseText(text []byte) (*Status, error) {
	r := &textReader{status: new(Status), sizes: make(map[string]int), index: make(map[textKey]int),
		dead: make(map[Place]bool), at: -1}
	known := false
	for line := range bytes.Lines(text) {
		if len(line) < 1<<12 && r.line(strings.TrimRight(string(line), "\r\n")) {
			known = true
		}
	}
	if !known {
		return nil, errors.New("neither the JSON nor the text of ncclras")
	}
	for i := range r.status.Communicators {
		c := &r.status.Communicators[i]
		c.countOthers()
		for k := range c.Missing {
			m := &c.Missing[k]
			m.Status.Dead = r.dead[Place{PID: m.PID, Host: m.Host}]
		}
	}
	return r.status, nil
}

// line reads a line. It reports whether only RAS writes such a line.
func (r *textReader) line(text string) bool {
	switch {
	case strings.TrimSpace(text) == "":
		r.at, r.kind = -1, ""
	case textVersion.MatchString(text):
		r.status.NCCL = textVersion.FindStringSubmatch(text)[1]
		return true
	case textGroup.MatchString(text):
		m := textGroup.FindStringSubmatch(text)
		if n, err := strconv.Atoi(m[2]); err == nil && n <= maxRanks {
			r.sizes[m[1]] = n
		}
	case textHead.MatchString(text):
		r.head(textHead.FindStringSubmatch(text))
		return true
	case text == "DEAD":
		r.kind = text
	case r.kind == "DEAD":
		if m := textProcess.FindStringSubmatch(text); m != nil {
			pid, _ := strconv.Atoi(m[1])
			r.dead[Place{PID: pid, Host: m[2]}] = true
		}
	case r.at >= 0:
		r.detail(&r.status.Communicators[r.at], text)
	}
	return false
}

// head reads the first line of a paragraph on a communicator.
func (r *textReader) head(m []string) {
	hash, err := strconv.ParseUint(m[2], 16, 64)
	if err != nil {
		return
	}
	r.kind, r.function, r.counted, r.abort, r.result = m[3], "", false, false, ""
	all := r.status.Communicators
	key := textKey{Hash(hash), r.sizes[m[1]]}
	at, known := r.index[key]
	if !known {
		at = len(all)
		r.index[key] = at
		r.status.Communicators = append(all, Communicator{Hash: key.hash, Size: key.size, index: make(map[int]int)})
	}
	r.at = at
	c := &r.status.Communicators[r.at]
	if !slices.Contains(c.Troubles, m[3]) && len(c.Troubles) < maxTroubles {
		c.Troubles = append(c.Troubles, m[3])
	}
}

// detail reads a further line of such a paragraph.
func (r *textReader) detail(c *Communicator, text string) {
	if m := textFunction.FindStringSubmatch(text); m != nil {
		r.function, r.counted = m[1], false
		return
	}
	if strings.HasPrefix(text, "  Asynchronous error") || strings.HasPrefix(text, "  Initialization error") {
		r.async = strings.HasPrefix(text, "  Asynchronous")
		return
	}
	if m := textCount.FindStringSubmatch(text); m != nil && r.function != "" {
		r.count, _ = strconv.ParseUint(m[1], 10, 64) // 0: none
		r.counted = true
		c.counts(r.function)[r.count] = true
	}
	if m := textStatus.FindStringSubmatch(text); m != nil {
		r.abort = m[1] == "ABORT"
	}
	if m := textError.FindStringSubmatch(text); m != nil {
		r.result = m[1]
	}
	if m := textList.FindStringSubmatch(text); m != nil {
		for part := range strings.SplitSeq(m[1], ",") {
			if rank, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
				c.addMissing(Place{Rank: rank})
			}
		}
		return
	}
	var p Place
	switch m := textPlace.FindStringSubmatch(text); {
	case m != nil:
		p.Rank, _ = strconv.Atoi(m[1])
		p.PID, _ = strconv.Atoi(m[2])
		p.Host = m[3]
	default:
		if m = textRank.FindStringSubmatch(text); m == nil {
			return
		}
		p.Rank, _ = strconv.Atoi(m[1])
	}
	switch r.kind {
	case "INCOMPLETE":
		c.addMissing(p)
	case "ERROR":
		if rank := c.rank(p); rank != nil && r.async {
			rank.Status.Error = resultNames[r.result]
			if rank.Status.Error == 0 {
				rank.Status.Error = resultNames["Internal error"]
			}
		}
	case "MISMATCH":
		if rank := c.rank(p); rank != nil {
			rank.Status.Abort = rank.Status.Abort || r.abort
			if r.counted {
				rank.Collectives[r.function] = r.count
			}
		}
	}
}

// counts returns the numbers of operations of a function that ranks are reported to have begun.
func (c *Communicator) counts(function string) map[uint64]bool {
	if c.begun == nil {
		c.begun = make(map[string]map[uint64]bool)
	}
	numbers := c.begun[function]
	if numbers == nil {
		numbers = make(map[uint64]bool)
		if len(c.begun) < maxTroubles {
			c.begun[function] = numbers
		}
	}
	return numbers
}

// rank finds or adds a rank that answered. It returns nil if there are too many.
func (c *Communicator) rank(p Place) *Rank {
	if i, ok := c.index[p.Rank]; ok {
		return &c.Ranks[i]
	}
	if len(c.Ranks) == maxNamed || p.Rank >= maxRanks {
		return nil
	}
	c.index[p.Rank] = len(c.Ranks)
	c.Ranks = append(c.Ranks, Rank{Place: p, Collectives: make(map[string]uint64)})
	return &c.Ranks[len(c.Ranks)-1]
}

// maxNamed is larger than the number of ranks of a communicator that RAS names.
const maxNamed = 1 << 12

func (c *Communicator) addMissing(p Place) {
	if len(c.Missing) < maxNamed && p.Rank < maxRanks {
		m := MissingRank{Place: p}
		m.Status.Unresponsive = true
		c.Missing = append(c.Missing, m)
	}
}

// countOthers gives the unnamed ranks the number that RAS reports for all of them: the only one that no named rank
// has.
func (c *Communicator) countOthers() {
	for function, numbers := range c.begun {
		named := make(map[int]bool)
		for i := range c.Missing {
			named[c.Missing[i].Rank] = true
		}
		for i := range c.Ranks {
			if n, ok := c.Ranks[i].Collectives[function]; ok {
				named[c.Ranks[i].Rank] = true
				delete(numbers, n)
			}
		}
		if len(numbers) != 1 {
			continue
		}
		for n := range numbers {
			for rank := range min(c.Size, maxNamed) {
				if named[rank] {
					continue
				}
				if r := c.rank(Place{Rank: rank}); r != nil {
					r.Collectives[function] = n
				}
			}
		}
	}
}
