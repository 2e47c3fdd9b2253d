// SPDX-License-Identifier: Apache-2.0

package collector

import "time"

// profileSchedule says when profiles of the running job are due, in the collector of its first rank.
type profileSchedule struct {
	due      chan<- string // nil: none are
	interval time.Duration
	next     time.Time
}

// startProfiles begins to ask for profiles if the settings want them and this is the job's first rank.
func (c *live) startProfiles(due chan<- string) {
	if c.isFirst() && c.settings.Profile && c.settings.ProfileInterval > 0 {
		c.profiles = profileSchedule{due, c.settings.ProfileInterval, time.Now().Add(c.settings.ProfileInterval)}
	}
}

// isFirst reports whether the process is the job's first rank.
func (c *live) isFirst() bool {
	if comm, ok := c.memory.Comm(0); c.launcher.Rank < 0 && ok {
		return comm.Rank == 0
	}
	return c.launcher.Rank == 0
}

// startMetrics has the job's metrics kept if the settings want them and this is the job's first rank.
func (c *live) startMetrics(keep func(experiment, folder string)) {
	if keep != nil && c.settings.Prometheus != "" && !c.settings.Record && c.isFirst() {
		keep(c.experiment, c.settings.Prometheus)
	}
}

// request asks for a profile of an experiment if it is time to and the one before is made.
func (s *profileSchedule) request(experiment string) {
	if s.due == nil || time.Now().Before(s.next) {
		return
	}
	select {
	case s.due <- experiment:
		s.next = time.Now().Add(s.interval)
	default:
	}
}
