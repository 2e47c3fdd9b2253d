// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Read reads the description of a shard's folder: shard.json, or the checkpoint.json of a live writer if that is newer,
// as it is between the end of a flush and the next one. If shard.json cannot be read, or is older than the files beside
// it, as after a power cut, it uses those (Process.Instead). It rejects other versions of the schema. The error is that
// of shard.json.
func Read(path string) (*description.Process, error) {
	l, _ := readEvidence(path)
	p, _, _, err := read(path, l, time.Now())
	return p, err
}

// read is Read with the evidence about the shard's writer.
func read(path string, l evidence, now time.Time) (p *description.Process, s State, guess bool, err error) {
	age := now.Sub(changeTime(filepath.Join(path, ProcessFile)))
	if !l.done {
		if p := flushed(path); p != nil {
			if s, guess := l.decideState(p, age); s == Writing {
				return p, s, guess, nil
			}
		}
	}
	p, err = readFile(path, ProcessFile)
	s, guess = l.decideState(p, age)
	// While the writer lives, and after it has finished, no other file can be newer.
	if err == nil && (p.Finished || s != Dead) {
		return p, s, guess, nil
	}
	best, why := p, "it is older"
	if err != nil {
		why = err.Error()
	}
	for _, name := range []string{CheckpointFile, durableFile} {
		if q, err := readFile(path, name); err == nil && (best == nil || q.Serial > best.Serial) {
			best, q.Instead = q, &description.Instead{File: name, Why: why}
		}
	}
	if best == nil {
		return nil, s, guess, err
	}
	return best, s, guess, nil
}

// flushed returns the last checkpoint, if shard.json has not been written since.
func flushed(path string) *description.Process {
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

// headSize is more than the bytes before Process.Serial in a description.
const headSize = 4096

// serial reads Process.Serial of a description, and nothing more of it.
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

// ReadCheckpoint reads the state of a shard at its last flush; an error that wraps fs.ErrNotExist if there was none.
func ReadCheckpoint(path string) (*description.Process, error) { return readFile(path, CheckpointFile) }

func readFile(path, name string) (*description.Process, error) {
	path = filepath.Join(path, name)
	text, err := regular.ReadOwn(path, MaxDescription)
	if err != nil {
		return nil, err
	}
	p := new(description.Process)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.Version != description.Version {
		return nil, fmt.Errorf("%s has version %d, this program reads %d", path, p.Version, description.Version)
	}
	return p, nil
}
