// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Instead says that a shard's description was not taken from shard.json.
type Instead struct {
	File string // that it was taken from
	Why  string // what is wrong with shard.json
}

// Read reads the description of a shard's folder: shard.json, or of a writer that works checkpoint.json where that is
// newer, as it is from the end of a flush to the next one. Where shard.json cannot be read, or is older than what was
// written beside it, as a power cut may leave it, that is taken (Process.Instead). It refuses other versions of the
// schema. The error is that of shard.json.
func Read(path string) (*Process, error) {
	l, _ := lookAt(path)
	p, _, _, err := read(path, l, time.Now())
	return p, err
}

// read is Read of a shard with what was seen of its writer.
func read(path string, l look, now time.Time) (p *Process, s State, guess bool, err error) {
	age := now.Sub(changed(filepath.Join(path, ProcessFile)))
	if !l.done {
		if p := flushed(path); p != nil {
			if s, guess := l.state(p, age); s == Writing {
				return p, s, guess, nil
			}
		}
	}
	p, err = readFile(path, ProcessFile)
	s, guess = l.state(p, age)
	// Beside a writer that works nothing else can be newer, and behind one that has finished nothing.
	if err == nil && (p.Finished || s != Dead) {
		return p, s, guess, nil
	}
	best, why := p, "it is older"
	if err != nil {
		why = err.Error()
	}
	for _, name := range []string{CheckpointFile, durableFile} {
		if q, err := readFile(path, name); err == nil && (best == nil || q.Serial > best.Serial) {
			best, q.Instead = q, &Instead{File: name, Why: why}
		}
	}
	if best == nil {
		return nil, s, guess, err
	}
	return best, s, guess, nil
}

// flushed is the last checkpoint, if shard.json has not been written since.
func flushed(path string) *Process {
	described, ok := serial(path, ProcessFile)
	if !ok {
		return nil
	}
	if n, ok := serial(path, CheckpointFile); !ok || n < described {
		return nil
	}
	p, err := ReadCheckpoint(path)
	if err != nil {
		return nil
	}
	return p
}

// headSize is more than what stands before Process.Serial in a description (bytes).
const headSize = 4096

// serial is Process.Serial of a description, of which no more is read.
func serial(path, name string) (n uint64, ok bool) {
	f, err := regular.OpenOwn(filepath.Join(path, name))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, headSize))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, false
		}
		if key == "serial" {
			return n, d.Decode(&n) == nil
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return 0, false
		}
	}
	return 0, false
}

// ReadCheckpoint reads what a shard was at its last flush; an error that wraps fs.ErrNotExist if there was none.
func ReadCheckpoint(path string) (*Process, error) { return readFile(path, CheckpointFile) }

func readFile(path, name string) (*Process, error) {
	path = filepath.Join(path, name)
	text, err := regular.ReadOwn(path, MaxDescription)
	if err != nil {
		return nil, err
	}
	p := new(Process)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.Version != Version {
		return nil, fmt.Errorf("%s has version %d, this program reads %d", path, p.Version, Version)
	}
	return p, nil
}
