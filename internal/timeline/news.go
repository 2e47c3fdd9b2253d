// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	_ "embed" // the page that waits
	"encoding/json"
	"sync"
	"time"
)

// waitingAsset is the page served until the timeline is ready; `make page` builds it from page/.
//
//go:embed asset/waiting.html
var waitingAsset []byte

// news is the progress of reading, for pages that wait.
type news struct {
	mu      sync.Mutex
	now     progress
	err     error
	changed chan struct{} // closed on a change
	settled chan struct{} // closed when the timeline is ready or has failed
}

// progress is the message to a waiting page. page/src/waiting.ts has the same fields.
type progress struct {
	Version int    `json:"version"`
	Title   string `json:"title"`
	What    string `json:"what"` // the present activity
	Done    uint64 `json:"done"` // of Total; 0 of 0: unknown
	Total   uint64 `json:"total"`
	Ready   bool   `json:"ready"`
	Failed  string `json:"failed"`
}

// leastPause is the least time between two answers to a waiting page, so that reporting does not slow down reading.
const leastPause = 200 * time.Millisecond

func (n *news) begin(title string) {
	n.now.Title, n.changed, n.settled = title, make(chan struct{}), make(chan struct{})
}

// Say reports the present activity and its progress to waiting pages; 0 of 0: unknown. It may be called from several
// goroutines.
func (n *news) Say(what string, done, total uint64) {
	n.change(func(r *progress) { r.What, r.Done, r.Total = what, done, total })
}

func (n *news) change(set func(*progress)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set(&n.now)
	n.now.Version++
	close(n.changed)
	n.changed = make(chan struct{})
}

// endWaiting ends the waiting: the timeline is ready, or it failed with err.
func (n *news) endWaiting(err error) {
	n.change(func(r *progress) {
		if n.err = err; err != nil {
			r.Failed = err.Error()
		} else {
			r.Ready = true
		}
	})
	close(n.settled)
}

func (n *news) ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now.Ready
}

// failed returns why there is no timeline; nil: there may be one.
func (n *news) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// await waits for the timeline; false: there is none.
func (n *news) await(ctx context.Context) bool {
	select {
	case <-n.settled:
		return n.ready()
	case <-ctx.Done():
		return false
	}
}

// next waits for a message newer than the one known, and returns it. A page always has a request pending, so it also
// learns why the tool ends.
func (n *news) next(ctx context.Context, known int) []byte {
	n.mu.Lock()
	changed, same := n.changed, n.now.Version == known
	n.mu.Unlock()
	if same {
		select {
		case <-changed:
		case <-n.settled:
		case <-ctx.Done():
		}
		select { // further changes may follow at once
		case <-n.settled:
		case <-ctx.Done():
		case <-time.After(leastPause):
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	body, _ := json.Marshal(&n.now) // numbers and texts
	return body
}
