// SPDX-License-Identifier: Apache-2.0

// Package ras reads what NCCL's RAS subsystem reports about a job, as a witness in addition to the job's shards: which
// ranks do not answer, have begun fewer collectives than others, or had errors.
//
// The input is the JSON of `ncclras -f json`, which NCCL has since 2.28.7 (its user guide, "RAS", section "JSON
// Output"; written by src/ras/client_support.cc), also with the missing comma of 2.28.9, or the text of `ncclras`. RAS
// identifies a communicator by its hash, which is the commId that plugins are given.
package ras

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/mend"
)

// Status is the health of a job's communicators at one moment.
type Status struct {
	NCCL          string         `json:"nccl_version"`
	Time          string         `json:"timestamp"` // local time of the host that answered
	Communicators []Communicator `json:"communicators"`
	Collection    struct {
		Seconds  float64 `json:"collection_time_sec"`
		Timeouts int     `json:"timeouts_count"` // processes that did not answer in time
	} `json:"ras"`
}

// Communicator is what RAS reports about one communicator.
type Communicator struct {
	Hash    Hash          `json:"hash"`
	Size    int           `json:"size"` // 0: not reported
	Ranks   []Rank        `json:"ranks"`
	Missing []MissingRank `json:"missing_ranks"`

	Troubles []string                   `json:"-"` // in the text form: "INCOMPLETE", "ERROR", "MISMATCH"
	begun    map[string]map[uint64]bool // operations begun, as reported for some ranks, by function
	index    map[int]int                // rank to index in Ranks
}

// Place says where a rank of a communicator runs.
type Place struct {
	Rank   int    `json:"rank"` // in the communicator
	Host   string `json:"host"` // an address, or "unknown"
	PID    int    `json:"pid"`
	Device int    `json:"cuda_dev"`
}

// Rank is a rank that answered.
type Rank struct {
	Place
	Status struct {
		Init     int  `json:"init_state"`  // ncclResult_t; 7: in progress
		Error    int  `json:"async_error"` // ncclResult_t
		Finalize bool `json:"finalize_called"`
		Destroy  bool `json:"destroy_flag"`
		Abort    bool `json:"abort_flag"`
	} `json:"status"`
	Collectives map[string]uint64 `json:"collective_counts"` // collectives begun, by function
}

// MissingRank is a rank that did not answer.
type MissingRank struct {
	Place
	Status struct {
		Unresponsive bool `json:"unresponsive"`    // its process did not answer
		Dead         bool `json:"considered_dead"` // it did not answer for so long that RAS gave it up
	} `json:"status"`
}

// Hash is a communicator's hash, hexadecimal in JSON: "0xae94423cfbb2ef4a".
type Hash uint64

// UnmarshalJSON reads the hexadecimal form.
func (h *Hash) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("hash of a communicator: %w", err)
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return fmt.Errorf("hash of a communicator: %w", err)
	}
	*h = Hash(n)
	return nil
}

// Limits on the input.
const (
	maxBytes = 256 << 20
	patience = time.Minute // RAS waits some seconds for processes that do not answer
)

// protocol is the protocol version that RAS and its clients exchange. Neither acts on it (src/ras/ras_internal.h of
// NCCL 2.30).
const protocol = 2

// Read reads a file, or asks the RAS of any process of a job if source is HOST:PORT (the process's NCCL_RAS_ADDR; its
// default port is 28028).
func Read(source string) (*Status, error) {
	f, err := os.Open(source)
	if err == nil {
		defer f.Close()
		return Parse(f)
	}
	if _, _, bad := net.SplitHostPort(source); bad != nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("RAS: %w (give a file, or HOST:PORT)", err)
	}
	return ask(source)
}

// Parse reads the JSON form or the text form.
func Parse(r io.Reader) (*Status, error) {
	var text bytes.Buffer
	all := io.TeeReader(io.LimitReader(r, maxBytes), &text)
	s := new(Status)
	err := json.NewDecoder(all).Decode(s)
	if err == nil && (s.NCCL != "" || s.Communicators != nil) {
		return s, nil
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return nil, fmt.Errorf("RAS: %w", err)
	}
	content := bytes.TrimPrefix(text.Bytes(), []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		s = new(Status)
		if err := json.Unmarshal(mend.JSON(content), s); err != nil {
			return nil, fmt.Errorf("RAS: no JSON of ncclras -f json: %w", err)
		}
		if s.NCCL == "" && s.Communicators == nil {
			return nil, errors.New("RAS: no JSON of ncclras -f json: it names no communicators")
		}
		return s, nil
	}
	if s, err = parseText(content); err != nil {
		return nil, fmt.Errorf("RAS: %w: give what ncclras printed, or HOST:PORT", err)
	}
	return s, nil
}

// ask has the same dialog with RAS as ncclras.
func ask(address string) (*Status, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, fmt.Errorf("RAS: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("RAS: %w", err)
	}
	answers := bufio.NewReader(io.LimitReader(c, maxBytes))
	for _, step := range []struct {
		say, want string
		optional  bool // otherwise a different answer means that it is not RAS
	}{{fmt.Sprintf("CLIENT PROTOCOL %d\n", protocol), "SERVER PROTOCOL ", false},
		{"SET FORMAT json\n", "OK", true}} { // before 2.28.7 there is only text
		if _, err := io.WriteString(c, step.say); err != nil {
			return nil, fmt.Errorf("RAS at %s: %w", address, err)
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("RAS at %s: %w", address, err)
		}
		if !strings.HasPrefix(answer, step.want) && !step.optional {
			return nil, fmt.Errorf("RAS at %s answers %q to %q: is it NCCL's RAS?", address, strings.TrimSpace(answer),
				strings.TrimSpace(step.say))
		}
	}
	if _, err := io.WriteString(c, "STATUS\n"); err != nil {
		return nil, fmt.Errorf("RAS at %s: %w", address, err)
	}
	return Parse(answers)
}
