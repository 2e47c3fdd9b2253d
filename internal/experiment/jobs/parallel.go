// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"sync"
	"sync/atomic"
)

// ForEach calls f for 0…n−1 from several goroutines and returns the first error (by index). After
// an error no further call begins.
func ForEach(n, workers int, f func(i int) error) error {
	var (
		next, failed atomic.Int64
		wg           sync.WaitGroup
		mu           sync.Mutex
		first        error
		firstIndex   = n
	)
	for range min(workers, n) {
		wg.Go(func() {
			for failed.Load() == 0 {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					failed.Store(1)
					mu.Lock()
					if i < firstIndex {
						first, firstIndex = err, i
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}
