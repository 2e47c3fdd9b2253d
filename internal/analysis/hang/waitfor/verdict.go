// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
)

// Culprits puts what was found into the form of a verdict, of each rank and kind the first. What a running job has been
// in for less than [Young] is left out, and so is what processes were in for an instant when they were killed together.
func Culprits(j *progress.Job, stops []Stop) []verdict.Culprit {
	all := []verdict.Culprit{}
	inexact := slices.ContainsFunc(j.Processes,
		func(p *progress.Process) bool { return p.Lossy || p.Continued || p.Paused })
	running := slices.ContainsFunc(j.Processes, func(p *progress.Process) bool { return p.State == jobs.Running })
	begin, end := span(j)
	for i := range stops {
		s := &stops[i]
		sure := s.Confidence(running)
		if sure == 0 || inexact && !s.Seen && s.Kind == verdict.Missing {
			continue
		}
		who := s.Culprits
		if len(who) == 0 { // nobody departs from the others more than they from it
			who, sure = s.Among, sure/float64(max(len(s.Among), 1))
		}
		for _, rank := range who {
			if slices.ContainsFunc(all, func(c verdict.Culprit) bool { return c.Rank == rank && c.Kind == s.Kind }) {
				continue
			}
			c := verdict.Culprit{Rank: rank, Kind: s.Kind, Peer: s.Peer, Share: 1 / float64(len(who)),
				Caused: 1 / float64(len(who)), Confidence: sure,
				Pattern: "once", Evidence: s.Text, Margin: s.Margin(), Stopped: !s.Passed}
			c.Evidence += s.held()
			if s.Age > 0 {
				c.TimeShare = float64(s.Age) / float64(max(end-min(begin, end), s.Age))
			}
			c.Host, c.GPU = whereIs(j, rank)
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b verdict.Culprit) int { return a.Compare(&b) })
	return all
}

// Confidence is that it is no chance that the job was so when it was looked at, or ended: the limits of ages are
// judgments, 0 means that nothing can be said.
func (s *Stop) Confidence(running bool) float64 {
	switch {
	case s.Passed:
		return 1
	case s.Seen && s.Certain:
		return 0.99
	case s.Seen || s.Undated:
		return 0.9
	case running && s.Age < Young:
		return 0
	case s.Certain:
		return 0.99
	}
	for _, c := range []struct {
		age  uint64
		sure float64
	}{{60_000_000_000, 0.99}, {Young, 0.95}, {1_000_000_000, 0.8}} {
		if s.Age >= c.age {
			return c.sure
		}
	}
	return 0
}

// span is from the job's first event to its last one.
func span(j *progress.Job) (begin, end uint64) {
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r == nil {
				continue
			}
			for _, p := range r.Parts {
				if t := p.At(p.Shard.FirstTime); p.Shard.FirstTime > 0 && (begin == 0 || t < begin) {
					begin = t
				}
			}
			end = max(end, r.Process.Last, r.Process.Ended)
		}
	}
	return begin, end
}

// whereIs is the host and the GPU of a rank of the world.
func whereIs(j *progress.Job, rank int) (host, gpu string) {
	for _, c := range j.Communicators {
		for i, r := range c.Ranks {
			if r == nil || i >= len(c.World) || c.World[i] != rank {
				continue
			}
			if n := len(r.Parts); n > 0 {
				of := r.Parts[n-1].Shard
				if g := r.GPU(); g >= 0 && g < len(of.GPUs) && of.GPUs[g].Device >= 0 {
					gpu = fmt.Sprint(of.GPUs[g].Device)
				}
			}
			return r.Process.Host, gpu
		}
	}
	return "", ""
}
