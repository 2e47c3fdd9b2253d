// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "which jobs: the same seed and number make the same job")
	casesFlag  = flag.Int("cases", 40, "how many made-up jobs with and without causes")
	nobodyFlag = flag.Int("nobody", 0, "how many more without")
	oddFlag    = flag.Int("odd", 0, "how many more with what befalls jobs of real life")
	caseFlag   = flag.Int("case", -1, "only the job of this number")
	planFlag   = flag.String("plan", "", "only jobs that have one of these wrong, separated by |")
	shapeFlag  = flag.String("shape", "", "only jobs that communicate in one of these ways, separated by commas")
	keepFlag   = flag.String("keep", "", "folder in which the experiment directories stay")
	againFlag  = flag.Bool(
		"again", false,
		"ask again of jobs whose archives are in the folder of -keep, of another version of the tool; jobs that hang "+
			"are left out")
	aimsFlag = flag.Bool("aims", false, "fail where what is aimed at is not reached")
	atOnce   = flag.Int("at-once", runtime.NumCPU(), "how many jobs are played at a time")
)

// firstNobody is the number of the first of the jobs that have nothing wrong.
const firstNobody = 1_000_000

// numbers are those of the jobs that the flags ask for.
func numbers() (all []int) {
	if *caseFlag >= 0 {
		return []int{*caseFlag}
	}
	for n := range *casesFlag {
		all = append(all, n)
	}
	for n := range *nobodyFlag {
		all = append(all, firstNobody+n)
	}
	for n := range *oddFlag {
		all = append(all, firstOdd+n)
	}
	return all
}

// result is what came of a job.
type result struct {
	job         *job
	plan        *plan
	truth       truth
	compared    compared
	waited      int64 // ns
	length      int64
	uncertainty int64 // of the hosts' clocks, at most
	said        string
	err         error
}

// In made-up jobs the tool names who held the others up, in what way and with what share, and nobody where nobody did.
func TestJobs(t *testing.T) {
	todo := numbers()
	results := make([]result, len(todo))
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range *atOnce {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(todo); i = next.Add(1) - 1 {
				results[i] = try(t, todo[i])
				if n := done.Add(1); n%100 == 0 {
					t.Logf("%d of %d jobs", n, len(todo))
				}
			}
		})
	}
	workers.Wait()
	var s score
	for i := range results {
		r := &results[i]
		if r.plan == nil { // not asked for
			continue
		}
		if r.err != nil {
			t.Errorf("%v: %v", r, r.err)
			continue
		}
		s.add(r)
		if faults := append(r.compared.faults(), r.compared.off()...); len(faults) > 0 || *caseFlag >= 0 {
			t.Logf("%v: %s\n\tin truth: %v, waited %.1f ms; clocks within %.0f µs; may be named: %v\n\tanswer: %s",
				r, strings.Join(faults, "; "), list(r.truth.culprits), float64(r.waited)/1e6,
				float64(r.uncertainty)/1e3, list(r.truth.may), r.said)
		}
	}
	t.Logf("seed %d:\n%s", *seedFlag, s.tables())
	for _, worse := range s.floor() {
		t.Error(worse)
	}
	for _, missed := range s.aims() {
		if *aimsFlag {
			t.Error(missed)
		} else {
			t.Log("not reached: " + missed)
		}
	}
	if golden.Updating() {
		golden.SectionMadeBy(t, page, "made-up jobs", "make answers",
			fmt.Sprintf("\nSeed %d, %d jobs.\n\n%s\n", *seedFlag, s.jobs, s.tables()))
	}
}

func (r *result) String() string {
	text := fmt.Sprintf("job %d (%s, %s, %d ranks on %d hosts, %d rounds", r.job.number, r.plan.name, r.job.shape,
		r.job.ranks,
		(r.job.ranks+r.job.perHost-1)/r.job.perHost, r.job.rounds)
	for i := range r.job.causes {
		if c := &r.job.causes[i]; !c.noise {
			text += "; " + c.String()
		}
	}
	return text + ")"
}

// try makes a job up, records it, and asks the tool.
func try(t *testing.T, number int) (r result) {
	p, big := planOf(number)
	if *planFlag != "" && !slices.Contains(strings.Split(*planFlag, "|"), p.name) {
		return r
	}
	j := makeJob(*seedFlag, number, p, big)
	if *shapeFlag != "" && !slices.Contains(strings.Split(*shapeFlag, ","), j.shape) {
		return r
	}
	r.plan, r.job = p, j
	var played *played
	r.truth, played = truthOf(r.job)
	r.waited, r.length = played.waited, played.length
	dir := *keepFlag
	if dir == "" {
		if dir, r.err = os.MkdirTemp("", "answers"); r.err != nil {
			return r
		}
		defer os.RemoveAll(dir)
	}
	dir = filepath.Join(dir, fmt.Sprint("job", number))
	if *againFlag {
		if played.hangs {
			return result{}
		}
		r.uncertainty, r.err = clocksOf(dir)
		if r.err == nil {
			r.err = r.judge(t, dir)
		}
		return r
	}
	if r.err = os.RemoveAll(dir); r.err != nil {
		return r
	}
	var living []*os.Process
	missing :=
		p.name == "missing" // raw files of dead processes do not say how long these waited for the call
	if played.hangs && (missing || number%2 == 1) { // it is asked while it hangs, too
		if living, r.err = lives(r.job); r.err != nil {
			return r
		}
		defer end(living)
	}
	if r.err = r.job.record(played, dir, *seedFlag, living); r.err != nil {
		return r
	}
	if living != nil {
		if r.err = r.ask(t, dir); r.err != nil || len(r.compared.faults()) > 0 {
			r.said = "while it hangs: " + r.said
			return r
		}
		if missing {
			return r
		}
		end(living)
	}
	r.err = r.ask(t, dir)
	return r
}

// ask makes the archive and compares what the tool says of it.
func (r *result) ask(t *testing.T, dir string) (err error) {
	if r.uncertainty, err = unify(t, dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, clocksFile), fmt.Append(nil, r.uncertainty), 0o600); err != nil {
		return err
	}
	return r.judge(t, dir)
}

// clocksFile is what the hosts' clocks may be off by, ns, beside an archive.
const clocksFile = "clocks"

func clocksOf(dir string) (uncertainty int64, err error) {
	text, err := os.ReadFile(filepath.Join(dir, clocksFile))
	if err == nil {
		_, err = fmt.Sscan(string(text), &uncertainty)
	}
	return uncertainty, err
}

// judge compares what the tool says of an archive with the truth.
func (r *result) judge(t *testing.T, dir string) error {
	v, err := answer(t, dir)
	if err != nil {
		return err
	}
	r.truth.within(r.job, r.uncertainty)
	r.compared, r.said = r.truth.compare(v), said(v)
	return nil
}

// lives starts processes that stand for those of a job, on one host.
func lives(j *job) (all []*os.Process, err error) {
	j.perHost = j.ranks
	for range j.ranks {
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			end(all)
			return nil, err
		}
		all = append(all, cmd.Process)
	}
	return all, nil
}

// end kills processes, which may be dead.
func end(all []*os.Process) {
	for _, p := range all {
		_ = p.Kill()
		_, _ = p.Wait()
	}
}

// unify makes the archive, and returns what the hosts' clocks may be off by, ns.
func unify(t *testing.T, dir string) (uncertainty int64, err error) {
	out, err := output(t, "unify", dir, "--format", "json")
	if err != nil {
		return 0, err
	}
	var made struct {
		Runs []struct {
			Sync struct {
				Hosts []struct {
					State string
					Most  int64 `json:"uncertainty_most_ns"`
				}
			} `json:"clock_sync"`
		}
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return 0, err
	}
	if len(made.Runs) != 1 {
		return 0, fmt.Errorf("%d runs", len(made.Runs))
	}
	for _, h := range made.Runs[0].Sync.Hosts {
		uncertainty = max(uncertainty, h.Most)
	}
	return uncertainty, nil
}

// within takes culprits from those that must be named whose delay is less than five times what the times may be off by.
func (tr *truth) within(j *job, uncertainty int64) {
	must := tr.culprits
	tr.culprits = nil
	for _, c := range must {
		small := false
		for i := range j.causes {
			k := &j.causes[i]
			small = small || k.delays() && k.rank == c.rank && k.kind == c.kind && k.delay < 5*uncertainty
		}
		if small {
			tr.may = append(tr.may, c)
		} else {
			tr.culprits = append(tr.culprits, c)
		}
	}
}
