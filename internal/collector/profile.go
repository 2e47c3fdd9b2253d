// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
)

// Profile mode: the timeline's events are summed up, and what they came to is replaced as a whole at each flush.

// writeProfile brings what has been summed up to disk. What it says of itself is true whatever else has been written:
// up to which records it goes.
func (r *recording) writeProfile() error {
	r.taken = r.merge.taken.clone()
	a := r.profile.Aggregate()
	a.Taken = r.taken.String()
	var text bytes.Buffer
	if err := a.Write(&text); err != nil {
		return err
	}
	r.summed = text.Bytes()
	return r.store.WriteProfile(r.summed)
}

// resumeProfile brings the shard of a dead collector back to its last checkpoint; nil if there never was one. The
// profile says itself up to which records it goes. Where that is further, the collector died in a flush, between the
// two, and shard.json, which goes first, tells what was under way then.
func resumeProfile(path string) (*experiment.Process, error) {
	now, unread := experiment.Read(path)
	p, err := rewind(path)
	if p == nil || err != nil {
		return p, err
	}
	a, _, err := profile.OpenShard(path)
	if err != nil {
		return p, nil // without a profile that can be read, what its description says is lost
	}
	if a.Taken == "" || a.Taken == p.Settings[settingTaken] {
		return p, nil
	}
	if unread == nil && now.Serial > p.Serial {
		p = now
	}
	p.Settings[settingTaken] = a.Taken
	return p, experiment.Rewind(path, p)
}

// profiles says when profiles of the job are due while it runs, in the collector of its first rank.
type profiles struct {
	due      chan<- string // nil: none are
	interval time.Duration
	next     time.Time
}

// startProfiles begins to ask for profiles if that was asked for, and here.
func (c *live) startProfiles(due chan<- string) {
	if c.isFirst() && c.settings.Profile && c.settings.ProfileInterval > 0 {
		c.profiles = profiles{due, c.settings.ProfileInterval, time.Now().Add(c.settings.ProfileInterval)}
	}
}

// isFirst reports whether the process is the job's first rank.
func (c *live) isFirst() bool {
	if comm, ok := c.memory.Comm(0); c.launcher.Rank < 0 && ok {
		return comm.Rank == 0
	}
	return c.launcher.Rank == 0
}

// startMetrics has the metrics of the job kept, where that is asked for and here.
func (c *live) startMetrics(keep func(experiment, folder string)) {
	if keep != nil && c.settings.Prometheus != "" && c.script == nil && c.isFirst() {
		keep(c.experiment, c.settings.Prometheus)
	}
}

// profileDue asks for a profile if it is time and the one before is done.
func (c *live) profileDue() {
	p := &c.profiles
	if p.due == nil || time.Now().Before(p.next) {
		return
	}
	select {
	case p.due <- c.experiment:
		p.next = time.Now().Add(p.interval)
	default:
	}
}
