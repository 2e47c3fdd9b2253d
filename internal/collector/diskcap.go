// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/config"
)

// capPeriod is after how many records the bytes on disk are compared with the cap.
const capPeriod = 4096

// diskCap bounds what a process has on disk (setting DISK).
type diskCap struct {
	most    uint64 // bytes; 0: no limit
	reached string // why nothing new is recorded any more; "" while it is
}

// onDisk is how many bytes of recorded events the process has on disk, those of earlier collectors included.
func (r *recording) onDisk() uint64 {
	return r.dead.bytes + r.shard.store.EventBytes() + r.output.size()
}

// check has the plugin record nothing new once as much is on disk as the settings allow. What is in memory is still
// written, so that the timeline is complete up to there.
func (c *diskCap) check(r *recording) {
	if c.most == 0 || c.reached != "" || r.onDisk() < c.most {
		return
	}
	r.plugin.refuseNew()
	c.reached = fmt.Sprintf("nothing new is recorded from here on: %d bytes are on disk, %sDISK allows %d", r.onDisk(),
		config.Prefix, c.most)
	r.mark(categoryStopped, c.reached)
}

// stopped says why nothing new is recorded any more; "" while it is.
func (r *recording) stopped() string {
	if r.disk.failed != nil {
		return r.disk.failed.Error()
	}
	if r.disk.outage != nil && r.disk.err != nil {
		return r.disk.err.Error()
	}
	return r.diskCap.reached
}
