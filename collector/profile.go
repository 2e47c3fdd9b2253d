// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"time"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/profile"
)

// Profile mode: the timeline's events are summed up, and what they came to is replaced as a whole at each flush.

// writeProfile brings what has been summed up to disk. What it says of itself is true whatever else has been written: up to which
// records it goes.
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

// resumeProfile brings the shard of a dead collector back to its last checkpoint; nil if there never was one. The profile may be a
// flush ahead of it, and says itself up to which records it goes.
func resumeProfile(path string) (*experiment.Process, error) {
	p, err := rewind(path)
	if p == nil || err != nil {
		return p, err
	}
	a, _, err := profile.OpenShard(path)
	if err != nil {
		return p, nil // without a profile that can be read, what its description says is lost
	}
	if a.Taken != "" {
		p.Settings[settingTaken] = a.Taken
	}
	return p, nil
}

// profiles makes profiles of the job while it runs, in the collector of its first rank.
type profiles struct {
	interval time.Duration // 0: none
	build    func(dir string) error
	next     time.Time
	busy     chan struct{} // closed when the one under way is done; nil: none is
}

// startProfiles begins to make profiles if that was asked for, and here.
func (c *live) startProfiles(build func(dir string) error) {
	first := c.launcher.Rank == 0
	if comm, ok := c.memory.Comm(0); c.launcher.Rank < 0 && ok {
		first = comm.Rank == 0
	}
	if build == nil || !first || !c.settings.Profile {
		return
	}
	c.profiles = profiles{interval: c.settings.ProfileInterval, build: build, next: time.Now().Add(c.settings.ProfileInterval)}
}

// profileDue makes a profile if it is time; the job's records are taken meanwhile.
func (c *live) profileDue() {
	p := &c.profiles
	if p.interval == 0 || time.Now().Before(p.next) {
		return
	}
	select {
	case <-p.busy:
	default:
		if p.busy != nil {
			return // the one before takes longer than the interval
		}
	}
	p.next = time.Now().Add(p.interval)
	done := make(chan struct{})
	p.busy = done
	go func() {
		defer close(done)
		if err := p.build(c.experiment); err != nil {
			c.say("profile of %s: %v", c.experiment, err)
		}
	}()
}

// wait waits for the profile under way.
func (p *profiles) wait() {
	if p.busy != nil {
		<-p.busy
	}
}
