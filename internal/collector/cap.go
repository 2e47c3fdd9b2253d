// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// capPeriod is after how many records a round looks at how much has been written.
const capPeriod = 4096

// onDisk is how many bytes of recorded events this process has on disk, those of earlier collectors included.
func (r *recording) onDisk() uint64 {
	n := r.inherited + r.store.EventBytes()
	if r.script != nil {
		n += r.script.Size()
	}
	return n
}

// checkCap ends the recording of anything new once as much is on disk as the settings allow. What is in memory is
// still written, so that the timeline is complete up to there.
func (r *recording) checkCap() {
	if r.cap == 0 || r.capped != "" || r.onDisk() < r.cap {
		return
	}
	r.refuse()
	r.capped = fmt.Sprintf("nothing new is recorded from here on: %d bytes are on disk, %sDISK allows %d", r.onDisk(),
		config.Prefix, r.cap)
	r.markers = append(r.markers, experiment.Marker{
		Time: r.given, Severity: severityHigh, Category: categoryStopped, Location: -1, Text: r.capped,
	})
}

// stopped says why nothing new is recorded any more, "" while it is.
func (r *recording) stopped() string {
	if r.failed != nil {
		return r.failed.Error()
	}
	if r.disk.outage != nil && r.disk.err != nil {
		return r.disk.err.Error()
	}
	return r.capped
}
