// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
)

// fault is one kind of what goes wrong.
type fault struct {
	name   string
	weight int
	spool  bool          // there may be no collector
	plan   func(r *play) // before the job begins
	after  func(r *play) // when it has ended, and its collectors have: before all is unified
}

var faults = []fault{
	{name: "job", weight: 5, spool: true, plan: jobDies},
	{name: "collector", weight: 5, plan: collectorDies},
	{name: "collector-at-call", weight: 5, plan: collectorDiesAtCall},
	{name: "collector-and-job", weight: 4, plan: bothDie},
	{name: "collector-told-to-end", weight: 1, plan: collectorIsNotified},
	{name: "collector-stopped", weight: 2, plan: collectorStops},
	{name: "collector-hangs", weight: 1, plan: collectorHangs},
	{name: "job-stopped", weight: 1, spool: true, plan: jobStops},
	{name: "collector-error", weight: 6, plan: collectorFails},
	{name: "unify", weight: 4, spool: true, after: unifyDies},
	{name: "unify-error", weight: 4, spool: true, after: unifyFails},
}

// jobDies kills one of the processes, or all.
func jobDies(r *play) {
	signal := pick(r.plan, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM)
	r.at(r.some(), func(process, pid int) {
		r.ends(process, signal)
		r.kill(pid, signal)
	})
	// The thread that writes raw files dies with the process, and so does a memfd.
	r.volatile = r.spool
}

func collectorDies(r *play) {
	r.at(r.some(), func(_, pid int) { r.killCollectors(pid, syscall.SIGKILL) })
}

// collectorDiesAtCall kills it in the midst of its work with the disk: the first one, or each that comes.
func collectorDiesAtCall(r *play) {
	r.injectCollector("kill", "", r.random.IntN(2) == 0, 1)
	if r.random.IntN(2) == 0 { // while one of its collectors works, or the plugin writes raw files
		r.at(r.some(), func(process, pid int) {
			r.ends(process, syscall.SIGKILL)
			r.kill(pid, syscall.SIGKILL)
		})
		r.volatile = true
	}
}

func bothDie(r *play) {
	jobFirst, wait := r.random.IntN(2) == 0, r.upTo(50*time.Millisecond)
	r.at(r.some(), func(process, pid int) {
		r.ends(process, syscall.SIGKILL)
		if jobFirst {
			r.kill(pid, syscall.SIGKILL)
			time.Sleep(wait)
			r.killCollectors(pid, syscall.SIGKILL)
			return
		}
		r.killCollectors(pid, syscall.SIGKILL)
		time.Sleep(wait)
		r.kill(pid, syscall.SIGKILL)
	})
	r.volatile = true
}

func collectorIsNotified(r *play) {
	r.at(r.some(), func(_, pid int) { r.killCollectors(pid, syscall.SIGTERM) })
}

func collectorStops(r *play) {
	if r.random.IntN(2) == 0 {
		r.injectCollector("stop", fmt.Sprint(r.upTo(400*time.Millisecond).Milliseconds()), false, 1+r.random.IntN(3))
		return
	}
	wait := r.upTo(400 * time.Millisecond)
	r.at(r.some(), func(_, pid int) {
		for _, c := range r.killCollectors(pid, syscall.SIGSTOP) {
			time.AfterFunc(wait, func() { r.kill(c, syscall.SIGCONT) })
		}
	})
}

// collectorHangs stops it until the job has ended, which must not wait for ever.
func collectorHangs(r *play) {
	signal := pick(r.plan, syscall.SIGCONT, syscall.SIGKILL)
	var hung []int
	r.at(r.some(), func(_, pid int) {
		stopped := r.killCollectors(pid, syscall.SIGSTOP)
		r.mu.Lock()
		defer r.mu.Unlock()
		hung = append(hung, stopped...)
	})
	r.ended = func() {
		for _, c := range hung {
			r.kill(c, signal)
		}
	}
	r.volatile = signal == syscall.SIGKILL
}

func jobStops(r *play) {
	wait := r.upTo(400 * time.Millisecond)
	r.at(r.some(), func(_, _ int) { time.Sleep(wait); r.hit.Store(true) })
}

// collectorFails lets its calls fail: once, some times, or from there on.
func collectorFails(r *play) {
	what, times := r.failure(), pick(r.plan, 1, 1, 2, 5, 0)
	r.injectCollector(what, "", r.random.IntN(2) == 0, times)
	r.lasting = times == 0 && what != "short"
}

// unifyDies kills it at some call, and perhaps the next one, too.
func unifyDies(r *play) {
	for range 1 + r.random.IntN(3) {
		r.unify("kill", pick(r.plan, "writes,names", "writes,opens,names,syncs", "reads,opens"), r.few(), 1)
	}
}

// unifyFails lets calls of it fail. What it says is done is done, and what was there before is there as long as it is
// not.
func unifyFails(r *play) {
	before := r.random.IntN(2) == 0
	if before {
		r.unifyAll()
	}
	what, number, times := r.failure(), r.few(), pick(r.plan, 1, 2, 0)
	status, injected, said := r.unify(what, r.kinds, number, times)
	switch {
	case status == 0:
		r.judge("after unify that said nothing of an error")
	case times == 0 && strings.Contains(said, "there is no archive now"):
		return // the disk does not even take back what was done
	case before && !r.archived() && len(r.acknowledged()) > 0:
		r.t.Errorf("unify failed, and the archive of before is gone: %s%s", injected, said)
	case before && !strings.Contains(said, "left out") && !strings.Contains(said, "in place of"): // what cannot be read
		r.judge("of before, after unify failed: " + injected)
	}
}

// failure is what a call is to answer, and sets which kinds of calls.
func (p *play) failure() string {
	p.kinds = pick(p.plan, "writes", "writes,names", "opens", "writes,opens,names,syncs", "syncs,names", "reads")
	what := pick(p.plan, fmt.Sprint(int(syscall.EIO)), fmt.Sprint(int(syscall.EIO)), fmt.Sprint(int(syscall.ENOSPC)))
	switch {
	case p.kinds == "opens" && p.random.IntN(2) == 0:
		return fmt.Sprint(int(syscall.EMFILE))
	case p.kinds == "writes" && p.random.IntN(3) == 0:
		return "short"
	case p.kinds == "reads":
		return fmt.Sprint(int(syscall.EIO))
	}
	return what
}

// killCollectors sends a signal to those that record a process, and gives them.
func (p *play) killCollectors(pid int, signal syscall.Signal) (sent []int) {
	for _, c := range collectors.Of(p.dir) {
		if collectors.Follows(c, pid) && p.kill(c, signal) {
			sent = append(sent, c)
		}
	}
	return sent
}
