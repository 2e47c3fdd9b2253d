// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Instead says that a shard's description was not taken from shard.json.
type Instead struct {
	File string // that it was taken from
	Why  string // what is wrong with shard.json
}

// Read reads the description of a shard's folder. Where shard.json cannot be read, or is older than what was written beside it, as a
// power cut may leave it, that is taken (Process.Instead). It refuses other versions of the schema. The error is that of shard.json.
func Read(path string) (*Process, error) {
	l, _ := lookAt(path)
	p, _, _, err := read(path, l, time.Now())
	return p, err
}

// read is Read of a shard with what was seen of its writer.
func read(path string, l look, now time.Time) (p *Process, s State, guess bool, err error) {
	p, err = readFile(path, processFile)
	s, guess = l.state(p, now.Sub(changed(filepath.Join(path, processFile))))
	// Beside a writer that works, and behind one that has finished, nothing can be newer.
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
