// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/powercut"
)

var powerCuts = flag.Int("powercuts", 100, "how many power cuts are tried")

// recordedJob is what a job and its collectors did, and `unify` twice, as strace saw it.
type recordedJob struct {
	backlog string // setting BACKLOG
	record  *powercut.Record
	dir     string // of the experiment
	secured []acknowledged
	whole   [][2]int // from one moment to another an archive was promised
	events  uint64   // of the whole job
}

// acknowledged is a durable checkpoint that was there at a moment.
type acknowledged struct {
	moment int
	shard  string
	events uint64
	calls  uint64 // that were put off, and are on the disk so: there are more events of them than one each
}

// tracedJobs are jobs of four or five processes whose collectors take records as they come, and put them off. What is
// put off has to be on the disk before it is taken, so that job calls NCCL all the time for seven seconds: collectors
// bring checkpoints to the disk 0, 1, 3 and 7 s after their start, or later, if nothing has come meanwhile.
var tracedJobs = map[string]func() (*recordedJob, error){
	"off": sync.OnceValues(func() (*recordedJob,
		error) {
		return traceJob("off", "nccl-callbacks/09-straggler-4p", 1)
	}),
	// On a busy machine the collectors come to it in a longer job only.
	"on": sync.OnceValues(func() (job *recordedJob, err error) {
		for slower := 4; slower <= 16 && err == nil && job.putOff() == 0; slower *= 2 {
			job, err = traceJob("on", "nccl-causes/c06-two-culprits-5p", slower)
		}
		return job, err
	}),
}

// putOff returns the number of calls that were put off and are promised.
func (j *recordedJob) putOff() (calls uint64) {
	if j != nil {
		for _, a := range j.secured {
			calls += a.calls
		}
	}
	return calls
}

func traceJob(backlog, recording string, slower int) (*recordedJob, error) {
	root, err := os.MkdirTemp("", "powercut-")
	if err != nil {
		return nil, err
	}
	tool, err := filepath.Abs("../build/nccl-otf2")
	if err != nil {
		return nil, err
	}
	if recording, err = filepath.Abs(filepath.Join("../testdata", recording)); err != nil {
		return nil, err
	}
	strace, err := straceWorks()
	if err != nil {
		return nil, err
	}
	job := &recordedJob{backlog: backlog, dir: filepath.Join(root, "below", "experiment")}
	defer os.RemoveAll(root)
	trace := filepath.Join(root, "trace")
	cmd := powercut.Command(strace, trace, 0, "sh", "-c",
		`"$0" replay "$1" --pace recorded --dir "$2" && "$0" unify "$2"`, tool, recording, job.dir)
	cmd.Env = append(os.Environ(), "NCCL_OTF2_BACKLOG="+backlog, "REPLAY_HOST_SLOWER="+strconv.Itoa(slower))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	checked, err := check.Archive(filepath.Join(job.dir, "traces.otf2"), nil)
	if err != nil || len(checked.Findings) > 0 {
		return nil, fmt.Errorf("the archive: %w, %v", err, checked)
	}
	job.events = checked.Events
	if job.record, err = powercut.Read(trace, root); err != nil {
		return nil, err
	}
	return job, job.promises()
}

// straceWorks finds a strace that may trace here.
func straceWorks() (string, error) {
	for _, path := range filepath.SplitList(os.Getenv("PATH")) {
		strace := filepath.Join(path, "strace")
		if _, err := os.Stat(strace); err == nil {
			out, err := powercut.Command(strace, os.DevNull, 0, "true").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return strace, err
		}
	}
	return "", fmt.Errorf("there is no strace (Debian: strace)")
}

// promises finds out when what was promised.
func (j *recordedJob) promises() error {
	anchor := filepath.Join(j.dir, "traces.otf2")
	last, putOff := make(map[string]string), make(map[string]string)
	there := false
	return j.record.Each(func(moment int, call, path string, d *powercut.Disk) {
		if strings.HasPrefix(call, "rename") || call == "unlinkat" {
			if _, ok := d.Content(anchor); there && !ok {
				there = false
				j.whole[len(j.whole)-1][1] = moment - 1
			}
		}
		if filepath.Base(path) == experiment.BacklogFile {
			if text, ok := d.Content(path); ok && strings.Contains(call, "sync") {
				putOff[filepath.Dir(path)] = string(text)
			}
			return
		}
		if call != "fsync" {
			return
		}
		if text, ok := d.Content(filepath.Join(path, "durable.json")); ok && last[path] != string(text) {
			last[path] = string(text)
			var p description.Process
			if err := json.Unmarshal(text, &p); err != nil {
				panic(err)
			}
			a := acknowledged{moment: moment, shard: filepath.Base(path)}
			for _, l := range p.Locations {
				a.events += l.Events
			}
			a.calls = putOffCalls(putOff[path], &p)
			j.secured = append(j.secured, a)
		}
		if _, ok := d.Content(anchor); ok && path == j.dir && !there {
			there = true
			j.whole = append(j.whole, [2]int{moment, j.record.Moments})
		}
	})
}

// putOffCalls counts the calls in a backlog that are in no event file yet.
func putOffCalls(backlog string, p *description.Process) (n uint64) {
	if backlog == "" {
		return 0
	}
	spool, err := shm.OpenSpool(strings.NewReader(backlog), int64(len(backlog)))
	if err != nil {
		panic(err)
	}
	spool.Within()
	var taken []uint64 // where what is in event files ends in each ring
	if _, ends, known := strings.Cut(p.Settings["TAKEN"], " "); known {
		for end := range strings.SplitSeq(ends, ",") {
			at, err := strconv.ParseUint(end, 10, 64)
			if err != nil {
				panic(err)
			}
			taken = append(taken, at)
		}
	}
	for ended := false; !ended; {
		round, err := spool.Refresh()
		if err != nil {
			panic(err)
		}
		ended = round.Ended
		for _, ring := range spool.Rings() {
			rec := new(shm.Record)
			for at := ring.Position(); ring.Next(rec); at = ring.Position() {
				another := ring.Index() < len(taken) && at < taken[ring.Index()]
				if rec.Kind == shm.RecordStart && rec.Type == shm.EventCollApi && !another {
					n++
				}
			}
		}
	}
	return n
}

// broken cuts the power at a moment and says what was promised and is not so; "": nothing.
func (j *recordedJob) broken(t *testing.T, moment int, luck powercut.Luck, r *rand.Rand,
	skip func(call, path string) bool) string {
	t.Helper()
	d, err := j.record.At(moment, skip)
	testkit.Must(t, err)
	to := testkit.Value(os.MkdirTemp(t.TempDir(), ""))(t)
	defer os.RemoveAll(to)
	testkit.Must(t, d.Cut(to, luck, r))
	dir := filepath.Join(to, "below", "experiment")

	anchor := filepath.Join(dir, "traces.otf2")
	_, err = os.Stat(anchor)
	for _, w := range j.whole {
		if w[0] <= moment && moment <= w[1] && err != nil {
			return "the archive is gone"
		}
	}
	if err == nil {
		checked, err := check.Archive(anchor, nil)
		if err != nil {
			return fmt.Sprint("the archive: ", err)
		}
		if len(checked.Findings) > 0 || checked.Events != j.events {
			return fmt.Sprintf("the archive: %d events, %v", checked.Events, checked.Findings)
		}
	}

	promised := make(map[string]uint64)
	for _, a := range j.secured {
		if a.moment <= moment {
			promised[a.shard] = a.events + a.calls
		}
	}
	total := uint64(0)
	for _, n := range promised {
		total += n
	}
	// As unify does, which says what it has to leave behind: of a backlog that nothing promises, the beginning need not
	// be there.
	_, left := collector.Salvage(dir)
	res, err := scorep.Unify(dir, nil)
	if err != nil {
		if len(promised) > 0 {
			return fmt.Sprintf("unify: %v, %d events were promised", err, total)
		}
		return ""
	}
	events, honest := uint64(0), res.Damaged > 0 || left != nil
	for i := range res.Runs {
		run := &res.Runs[i]
		events += run.Events
		honest = honest || run.Finished < run.Processes() || run.Missing > 0 || run.MissingRanks > 0 || run.Lost > 0
		checked, err := check.Archive(run.Archive, nil)
		if err != nil {
			return fmt.Sprint("the archive made after the cut: ", err)
		}
		for _, f := range checked.Findings {
			if f.Severity == check.Error && !strings.HasPrefix(f.Text, "when the archive was made") {
				return fmt.Sprintf("the archive made after the cut: %v", f)
			}
		}
	}
	switch {
	case events < total:
		return fmt.Sprintf("%d events, %d were promised; left behind: %v; problems %q", events, total, left,
			append(res.Problems, res.Runs[0].Problems...))
	case events < j.events && !honest:
		return fmt.Sprintf("%d events of %d, and nothing is said to be missing", events, j.events)
	}
	return ""
}

func needTracedJob(t *testing.T, backlog string) *recordedJob {
	t.Helper()
	_, err := straceWorks()
	need.NoError(t, "strace, to see in what order things come to the disk", err)
	return testkit.Value(tracedJobs[backlog]())(t)
}

// Whenever the power goes, and whatever of what was not brought to the disk is there then: what a durable checkpoint
// speaks of is in the archive that unify makes, an archive that has been made is whole, and what is missing is said to
// be. With what was put off, too.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	for backlog := range tracedJobs {
		t.Run(backlog, func(t *testing.T) {
			t.Parallel()
			testPowerCuts(t, needTracedJob(t, backlog))
		})
	}
}

func testPowerCuts(t *testing.T, job *recordedJob) {
	t.Helper()
	if len(job.secured) < 2*4 || len(job.whole) != 2 { // on a busy machine there is none between the first and the last
		t.Fatalf("%d durable checkpoints of 4 processes, and %d archives", len(job.secured), len(job.whole))
	}
	calls := job.putOff()
	testkit.Require(t, calls > 0 == (job.backlog == "on"), "%d calls that were put off are promised", calls)
	t.Logf("%d moments, %d durable checkpoints, %d calls put off in them, archives at %v", job.record.Moments,
		len(job.secured), calls, job.whole)
	for seed := range uint64(*powerCuts) {
		r := rand.New(rand.NewPCG(seed, 3))
		moment, luck := r.IntN(job.record.Moments+1), powercut.RandomLuck(r)
		testkit.Equal(t, job.broken(t, moment, luck, r, nil), "", "seed %d: power cut at %d, luck %d", seed, moment,
			luck)
	}
}

// With any kind of sync left out, promises are broken: each is needed, and the test above would see it missing.
func TestPowerCutsAreNoticed(t *testing.T) {
	t.Parallel()
	t.Run("backlogs", func(t *testing.T) {
		needTracedJob(t, "on").noticed(t, func(_, path string) bool {
			return filepath.Base(path) == experiment.BacklogFile
		})
	})
	job := needTracedJob(t, "off")
	shards := filepath.Join(job.dir, experiment.Folder)
	inShard := func(path string) bool { return filepath.Dir(filepath.Dir(path)) == shards }
	for name, skip := range map[string]func(call, path string) bool{
		"event files": func(_, path string) bool { return inShard(path) && strings.HasSuffix(path, ".evt") },
		"checkpoints before they have their name": func(_, path string) bool {
			return inShard(path) && strings.HasPrefix(filepath.Base(path), ".durable.json")
		},
		"names in the shard":      func(_, path string) bool { return filepath.Dir(path) == shards },
		"names of the shards":     func(_, path string) bool { return path == shards },
		"names in the experiment": func(_, path string) bool { return path == job.dir },
		"name of the experiment":  func(_, path string) bool { return path == filepath.Dir(job.dir) },
		"names above":             func(_, path string) bool { return path == filepath.Dir(filepath.Dir(job.dir)) },
		"files of the archive": func(_, path string) bool {
			return strings.HasPrefix(path, job.dir+"/traces.new/") && filepath.Ext(path) != ""
		},
		"names of its event files": func(_, path string) bool { return path == job.dir+"/traces.new/traces" },
	} {
		t.Run(name, func(t *testing.T) { job.noticed(t, skip) })
	}
}

// noticed wants promises to be broken where some syncs are left out.
func (j *recordedJob) noticed(t *testing.T, skip func(call, path string) bool) {
	t.Helper()
	const most = 2000
	for seed := range uint64(most) {
		r := rand.New(rand.NewPCG(seed, 4))
		moment, luck := r.IntN(j.record.Moments+1), powercut.RandomLuck(r)
		if text := j.broken(t, moment, luck, r, skip); text != "" {
			t.Logf("cut %d: %s", seed, text)
			return
		}
	}
	t.Errorf("%d power cuts show nothing", most)
}

// On a disk that takes its time the collectors go on taking records and writing them while a sync waits: nothing is
// lost.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	strace, err := straceWorks()
	need.NoError(t, "strace, which makes the disk slow", err)
	tool, err := filepath.Abs("../build/nccl-otf2")
	need.NoError(t, "what make build makes", err)
	// On a busy machine a process may have nothing to write while a sync waits: then the job is slower the next time.
	written := 0
	for slower := 1; slower <= 4 && written == 0; slower *= 2 {
		written = writtenOnSlowDisk(t, strace, tool, slower)
	}
	testkit.Check(t, written != 0, "nothing was written while a sync waited")
}

// writtenOnSlowDisk plays a job, looks for losses, and returns what collectors wrote while a sync waited.
func writtenOnSlowDisk(t *testing.T, strace, tool string, slower int) (written int) {
	t.Helper()
	root := t.TempDir()
	dir, trace := filepath.Join(root, "experiment"), filepath.Join(root, "trace")
	cmd := powercut.Command(strace, trace, 300*time.Millisecond, tool, "replay",
		filepath.Join("..", "testdata", "nccl-callbacks", "09-straggler-4p"), "--pace", "recorded", "--dir", dir)
	cmd.Env = append(os.Environ(), "REPLAY_HOST_SLOWER="+strconv.Itoa(slower))
	testkit.Output(t, cmd)
	checked, err := check.Archive(filepath.Join(dir, "traces.otf2"), nil)
	testkit.Check(t, err == nil && len(checked.Findings) == 0, "the archive: %v, %v", err, checked)
	for _, p := range shardsOf(t, dir) {
		testkit.Check(t, len(p.Counts.Lost) == 0, "process %d has lost %v", p.PID, p.Counts.Lost)
	}
	record := testkit.Value(powercut.Read(trace, root))(t)
	for _, e := range shardsOf(t, dir) {
		in := filepath.Join(dir, experiment.Folder, e.UUID)
		written += record.Between(filepath.Join(in, "checkpoint.json"), in, filepath.Join(in, "durable.json"))
	}
	return written
}
