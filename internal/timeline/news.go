// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	_ "embed" // the page that waits
	"encoding/json"
	"sync"
	"time"
)

// waitingAsset is the page that is served until the timeline is there. Made of page/ by `make page`.
//
//go:embed asset/waiting.html
var waitingAsset []byte

// news is how far reading is, for pages that wait for it.
type news struct {
	mu      sync.Mutex
	now     progress
	err     error
	changed chan struct{} // closed when there is something new
	settled chan struct{} // closed when the timeline is there, or will not be
}

// progress is what a page is told. page/src/waiting.ts has the same fields.
type progress struct {
	Version int    `json:"version"`
	Title   string `json:"title"`
	What    string `json:"what"` // is being done
	Done    uint64 `json:"done"` // of Total; 0 of 0: it is not known
	Total   uint64 `json:"total"`
	Ready   bool   `json:"ready"`
	Failed  string `json:"failed"`
}

// leastPause is between two answers to a page that waits: reading is not to be slowed down by telling of it.
const leastPause = 200 * time.Millisecond

func (n *news) begin(title string) {
	n.now.Title, n.changed, n.settled = title, make(chan struct{}), make(chan struct{})
}

// Say tells pages that wait what is being done, and how far it is; 0 of 0: nobody knows. Several goroutines may call
// it.
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

// settle ends waiting: the timeline is there, or it failed.
func (n *news) settle(err error) {
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

// failed is why there will be no timeline, nil: there may be one.
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

// next waits until there is something newer than what a page knows, and tells it, so that a page always asks: when the
// tool ends, it is told why.
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
		select { // more will follow at once
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
