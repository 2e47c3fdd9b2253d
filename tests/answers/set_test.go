// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var setsFlag = flag.Int("sets", 12, "how many made-up jobs in which a stage, a host or no set of ranks is slow")

// setPlans are which ranks are late together.
var setPlans = []struct {
	name  string
	shape string
	ranks func(m *maker) []int // nil: nobody
}{
	{"a stage", "model", (*maker).stage},
	{"a host", "model", (*maker).onOneHost},
	{"a rank", "model", func(m *maker) []int { return []int{m.random.IntN(m.ranks)} }},
	{"nobody", "model", nil},
	{"a stage", "model", (*maker).stage},
	{"a host", "grid", (*maker).onOneHost},
	{"nobody", "mesh", nil},
	{"a host", "world", (*maker).onOneHost},
	{"a replica", "model", (*maker).replica},
	{"a tensor group", "model", (*maker).tensorGroup},
}

// stage is all ranks of a stage of a model.
func (m *maker) stage() (all []int) {
	size := m.cut.tp * m.cut.dp
	s := m.random.IntN(m.cut.pp)
	return everybody(m.ranks)[s*size : (s+1)*size]
}

// replica is all ranks that work on the same batch.
func (m *maker) replica() (all []int) {
	d := m.random.IntN(m.cut.dp)
	for r := range m.ranks {
		if r/m.cut.tp%m.cut.dp == d {
			all = append(all, r)
		}
	}
	return all
}

// tensorGroup is all ranks that share the tensors of a stage of a replica.
func (m *maker) tensorGroup() (all []int) {
	first := m.random.IntN(m.ranks/m.cut.tp) * m.cut.tp
	return everybody(m.ranks)[first : first+m.cut.tp]
}

func (m *maker) onOneHost() (all []int) {
	host := m.random.IntN(max(1, m.ranks/m.perHost))
	for r := range m.ranks {
		if r/m.perHost == host {
			all = append(all, r)
		}
	}
	return all
}

// isComparable reports whether other ranks have the roles of a set's, or, where it has all of a stage, at least two
// other stages show how long a stage works.
func (j *job) isComparable(set []int) bool {
	if j.shape != model.name {
		return len(set) < j.ranks
	}
	size := j.cut.tp * j.cut.dp
	in := make([]int, j.cut.pp)
	for _, rank := range set {
		in[rank/size]++
	}
	whole, without := 0, 0
	for _, n := range in {
		whole, without = whole+btoi(n == size), without+btoi(n == 0)
	}
	return whole == 0 || without >= 2
}

// setJob makes a job of a plan up. set has who is late.
func setJob(seed uint64, number int) (j *job, set []int) {
	sp := &setPlans[number%len(setPlans)]
	p := &plan{name: sp.name, shapes: func(s *shape) bool { return s.name == sp.shape }}
	p.causes = func(m *maker) (all []cause) {
		if m.perHost = 4; m.shape.name == "world" {
			m.ranks = max(m.ranks, 9)
			m.groups, m.programs = nil, make([][]action, m.ranks)
			m.shape.begin(m.builder)
		}
		if sp.ranks == nil {
			return nil
		}
		set = sp.ranks(m)
		first := m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)
		first.part = m.random.IntN(min(m.shape.parts, 2))
		first.delay = max(first.delay, m.span()/10)
		if m.shape.name == model.name {
			first.delay = int64(logarithmic(m.random, 0.05, 0.5) * float64(m.host+m.kernel)) // with every micro-batch
		}
		for _, rank := range set {
			c := first
			c.rank = rank
			all = append(all, c)
		}
		return all
	}
	return makeJob(seed, firstSet+number, p, false), set
}

const firstSet = 3_000_000

// leastSetCost is the part of the run from which on what a set costs must be found.
const leastSetCost = 0.03

// setAnswer is what is said of a job, and what is true.
type setAnswer struct {
	plan          string
	set           []int
	said, inTruth float64 // parts of the run
	// it must be named, and was; ranks are named that did nothing
	must, found, wrong bool
	text               string
}

// Where ranks that belong together are late together, they are named together, with the time that they cost.
func TestSets(t *testing.T) {
	all := make([]setAnswer, *setsFlag)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range *atOnce {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				if *caseFlag < 0 || int(i) == *caseFlag {
					testkit.Must(t, all[i].ask(t, int(i)))
				}
			}
		})
	}
	workers.Wait()
	counts := make(map[string]*[4]int) // to be named, found, wrongly named, gains off by more than 5 % of the run
	var order []string
	for i := range all {
		a := &all[i]
		if counts[a.plan] == nil {
			counts[a.plan], order = new([4]int), append(order, a.plan)
		}
		n := counts[a.plan]
		off := a.found && math.Abs(a.said-a.inTruth) > 0.05
		for k, is := range []bool{a.must, a.must && a.found, a.wrong, off} {
			n[k] += btoi(is)
		}
		if a.wrong || off || a.must && !a.found {
			t.Logf("job %d, %s (%v): said %.1f %%, in truth %.1f %%: %s", i, a.plan, a.set, 100*a.said, 100*a.inTruth, a.text)
		}
	}
	table := "| late together | to be named | named | wrongly named | gain off by more than 5 % of the run |\n|---|--:|--:|--:|--:|\n"
	jobs, found, wrong := 0, 0, 0
	for _, name := range order {
		n := counts[name]
		table += fmt.Sprintf("| %s | %d | %d | %d | %d |\n", name, n[0], n[1], n[2], n[3])
		jobs, found, wrong = jobs+n[0], found+n[1], wrong+n[2]
	}
	t.Log("\n" + table)
	testkit.Check(t, float64(found) >= 0.9*float64(jobs), "%d of %d sets are named", found, jobs)
	testkit.Check(t, wrong <= *setsFlag/50, "%d are named that did nothing", wrong)
	if golden.Updating() {
		golden.SectionMadeBy(t, page, "sets", fmt.Sprintf("go test ./tests/answers -run TestSets -sets %d -update", *setsFlag),
			"\n"+table+"\n")
	}
}

// ask makes the job of a number up, records it, and compares what is said of it with the truth.
func (a *setAnswer) ask(t *testing.T, number int) error {
	j, set := setJob(*seedFlag, number)
	a.plan, a.set = setPlans[number%len(setPlans)].name, set
	start := len(j.causes) - 1
	steady := j.play(func(c int) bool { return c == start })
	without := j.play(func(int) bool { return true })
	a.inTruth = float64(steady.length-without.length) / float64(steady.length)
	dir := *keepFlag
	if dir == "" {
		dir = t.TempDir()
	}
	dir = filepath.Join(dir, fmt.Sprint("sets", number))
	if *keepFlag == "" {
		defer os.RemoveAll(dir)
	}
	if !*againFlag {
		if err := j.record(j.play(nothing), dir, *seedFlag, nil); err != nil {
			return err
		}
		if _, err := unify(t, dir); err != nil {
			return err
		}
	}
	r, err := pathOf(t, dir)
	if err != nil {
		return err
	}
	var named []int
	for i := range r.Verdict.Culprits {
		named = append(named, r.Verdict.Culprits[i].Rank)
	}
	slices.Sort(named)
	if r.Verdict.Set != nil {
		named = r.Verdict.Set.Ranks
	}
	for _, w := range r.Path.WhatIf {
		if w.Change == criticalpath.FasterRank {
			w.Ranks = []int{w.Rank}
		}
		slices.Sort(w.Ranks)
		if (w.Change == criticalpath.FasterSet || len(named) == 1) && slices.Equal(w.Ranks, named) {
			a.said = max(a.said, float64(w.Gain)/float64(steady.length))
		}
	}
	a.found = set != nil && slices.Equal(named, set)
	testkit.Equal(t, r.Verdict.StandsOut, len(named) > 0, "%v are named, stands out", named)
	if s := r.Verdict.Set; s != nil {
		for _, show := range []struct{ args, says string }{
			{"export --prometheus -o -", `nccl_otf2_culprit_set_share{slurm_job_id="unknown",node="` + s.Host + `",ranks="` +
				s.Name},
			{"export --perfetto -o -", s.Name + ": together"},
			{"report --html -o -", "<h3>" + s.Name},
		} {
			out, err := output(t, append(strings.Fields(show.args), dir)...)
			testkit.Check(t, err == nil && strings.Contains(string(out), show.says), "%s has no %q: %v", show.args, show.says,
				err)
		}
	}
	a.must = set != nil && a.inTruth >= leastSetCost && j.isComparable(set)
	a.wrong = slices.ContainsFunc(named, func(r int) bool { return !slices.Contains(set, r) })
	a.text = fmt.Sprintf("%v; %s", &j.causes[0], r.Verdict.Text)
	return nil
}
