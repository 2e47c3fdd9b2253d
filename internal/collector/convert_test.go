// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// spoolOf plays a job of two threads that the plugin's own thread spools, in three flushes of some calls each, and
// returns the file.
func spoolOf(t testing.TB, clock shm.ClockSource, each int) (file []byte, calls uint64) {
	t.Helper()
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: clock, Chunks: 256}))(t)
	defer job.Close()
	job.Header().RecordMask = 0x0f07
	ticks := uint64(1e9)
	now := monotonic
	if clock == shm.ClockHost {
		now = func() uint64 { ticks += 100; return ticks }
	}
	apps := []*application{newApplication(job, 0, now), newApplication(job, 1, now)}
	// The threads' first records are spooled, too.
	for _, a := range apps {
		a.thread.KeepForSpool()
	}
	var out bytes.Buffer
	for range 3 {
		for range each {
			for _, a := range apps {
				a.allReduce(calls / 2)
				calls++
			}
		}
		c := shm.ReadClock(clock)
		if clock == shm.ClockHost {
			c = shm.ClockTuple{Ticks: ticks, Raw: ticks, Mono: ticks, Real: ticks}
		}
		testkit.Must(t, job.Spool(&out, c))
	}
	testkit.Must(t, shmtest.SpoolEnd(&out))
	return out.Bytes(), calls
}

func writeSpool(t testing.TB, content []byte) (file, directory string) {
	t.Helper()
	directory = t.TempDir()
	return writeSpoolIn(t, directory, content), directory
}

func writeSpoolIn(t testing.TB, directory string, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(directory, "shards", "host-1-0001.spool")
	testkit.Must(t, os.MkdirAll(filepath.Dir(file), 0o777))
	testkit.Write(t, file, content)
	return file
}

// A process that is killed while its raw file is looked at: what it wrote meanwhile is converted, too, as what it had
// in memory comes behind that, and is taken once.
func TestConvertTakesTheLastWords(t *testing.T) {
	content, calls := spoolOf(t, shm.ClockMonotonic, 50)
	half := len(content) / 2
	file, dir := writeSpool(t, content[:half])
	looked := 0
	lives = func(string, int, uint64) bool {
		if looked++; looked == 1 { // the rest of what it wrote but for the end
			f := testkit.Value(os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0))(t)
			testkit.Value(f.Write(content[half : len(content)-frameHead]))(t)
			testkit.Must(t, f.Close())
		}
		return false
	}
	defer func() { lives = experiment.Lives }()
	testkit.Must(t, convert(file, dir))
	e := onlyShard(t, dir)
	if n := starts(e.Process); e.State != experiment.Done || n != calls*perCall {
		t.Errorf("state %v, %d starts of %d", e.State, n, calls*perCall)
	}
	got, want := e.Process.Settings[description.SettingSpooled], strconv.Itoa(len(content)-frameHead)
	testkit.Check(t, got == want, "%s bytes of %s were converted", got, want)
}

func TestConvert(t *testing.T) {
	for _, clock := range []shm.ClockSource{shm.ClockMonotonic, shm.ClockHost} {
		t.Run(clock.String(), func(t *testing.T) {
			content, calls := spoolOf(t, clock, 50)
			file, dir := writeSpool(t, content)
			testkit.Must(t, convert(file, dir))
			e := onlyShard(t, dir)
			p := e.Process
			testkit.Check(t, e.State == experiment.Done && p.Finished && starts(p) == calls*perCall,
				"state %v, finished %v, %d starts of %d", e.State, p.Finished, starts(p), calls*perCall)
			testkit.Check(t, len(p.Counts.Oddities) == 0 && len(p.Markers) == 0,
				"oddities %v, markers %v", p.Counts.Oddities, p.Markers)
			testkit.Check(t, p.Settings["COLLECTOR"] == "spool" && p.Settings["EVENTS"] == "light" &&
				p.Launcher.Rank == -1, "settings %v, launcher %v", p.Settings, p.Launcher)
			testkit.Check(t, eventsOf(t, e) >= calls*4, "%d events of %d calls", eventsOf(t, e), calls)
			_, err := os.Stat(file)
			testkit.Check(t, errors.Is(err, os.ErrNotExist), "the file is still there: %v", err)
			kept, err := os.ReadFile(file + ".done")
			testkit.Check(t, err == nil && bytes.Equal(kept, content), "the converted file: %v", err)
		})
	}
}

func TestConvertWhatIsWhole(t *testing.T) {
	content, calls := spoolOf(t, shm.ClockMonotonic, 50)
	for _, size := range []int{shm.HeaderSize + 32, len(content) / 3, len(content) - 33, len(content) - 1} {
		file, dir := writeSpool(t, content[:size])
		testkit.Must(t, convert(file, dir))
		e := onlyShard(t, dir)
		testkit.Check(t, e.State == experiment.Done && starts(e.Process) <= calls*perCall,
			"%d bytes: state %v, %d starts", size, e.State, starts(e.Process))
		marked := len(e.Process.Markers) > 0 && strings.HasPrefix(
			e.Process.Markers[0].Text, "the raw file ends early: ")
		want := size != shm.HeaderSize+32
		testkit.Check(t, marked == want, "%d bytes: markers %v", size, e.Process.Markers)
	}
}

// A process that was killed before it wrote anything has left nothing that could be damaged; it is named, once it has
// ended.
func TestConvertNothing(t *testing.T) {
	file, dir := writeSpool(t, nil)
	if err := convert(file, dir); !errors.Is(err, rawfiles.ErrNothingWritten) || len(shards(t, dir)) != 0 {
		t.Errorf("%v, %v", err, shards(t, dir))
	}
	held := testkit.Value(os.Open(file))(t)
	defer held.Close()
	testkit.Must(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	err := convert(file, dir)
	testkit.Check(t, err == nil && len(shards(t, dir)) == 0, "while its process lives: %v, %v", err, shards(t, dir))
}

func TestConvertRefuses(t *testing.T) {
	for name, content := range map[string][]byte{"rubbish": bytes.Repeat([]byte("rubbish "), 1000)} {
		file, dir := writeSpool(t, content)
		err := convert(file, dir)
		testkit.Check(t, errors.Is(err, shm.ErrCorrupt) && strings.Contains(err.Error(), file) &&
			!strings.Contains(err.Error(), "\n"), "%s: %v", name, err)
		list := shards(t, dir)
		testkit.Check(t, len(list) == 0, "%s: shards %v", name, list)
		_, err = os.Stat(file)
		testkit.Check(t, err == nil, "%s: %v", name, err)
	}
	err := convert(filepath.Join(t.TempDir(), "none.spool"), t.TempDir())
	testkit.Check(t, errors.Is(err, os.ErrNotExist), "%v", err)
}

// A record of a type that there is not ends its ring: what precedes it is in the archive, with all that others have
// recorded, and the process is named.
func TestDamagedRecords(t *testing.T) {
	content, calls := spoolOf(t, shm.ClockMonotonic, 50)
	whole, _ := spoolOf(t, shm.ClockMonotonic, 50)
	for _, kind := range []string{"stop", "state"} {
		damaged := bytes.Clone(content)
		last := damaged[len(damaged)-frameHead-shm.Unit:]
		last[9] = 200
		if kind == "state" {
			last[8] = byte(shm.RecordState)
		}
		file, dir := writeSpool(t, damaged)
		testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "other.spool"), whole, 0o600))
		hold := testkit.Value(experiment.Lock(dir))(t)
		result, err := scorep.Unify(dir, &scorep.UnifyOptions{Hold: hold, Raw: ConvertAll(hold)})
		hold.Release()
		testkit.Must(t, err)
		testkit.Check(t, result.Damaged == 1 &&
			strings.Contains(strings.Join(result.Problems, "\n"), "the records of 1 thread are damaged"),
			"%s: %d damaged: %v", kind, result.Damaged, result.Problems)
		n := uint64(0)
		for _, e := range shards(t, dir) {
			n += starts(e.Process)
		}
		testkit.Check(t, n == 2*calls*perCall, "%s: %d starts of %d", kind, n, 2*calls*perCall)
	}
}

// A communicator whose size is damage is shown as one of unknown size; the process's other data is not touched by it.
func TestDamagedCommunicators(t *testing.T) {
	for _, size := range []shm.Comm{{NRanks: 1 << 30, Rank: 5}, {NRanks: -7, Rank: 0}, {NRanks: 4, Rank: 4},
		{NRanks: 4, Rank: -1}, {Rank: 1 << 30}} {
		job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockHost, Chunks: 16}))(t)
		defer job.Close()
		job.Header().RecordMask = 0x0f07
		ticks := uint64(1e9)
		app := newApplication(job, 0, func() uint64 { ticks += 100; return ticks })
		app.thread.KeepForSpool()
		size.ID, size.InitTicks = 0x99, ticks
		job.Comm(size, nil)
		app.allReduce(0)
		var out bytes.Buffer
		testkit.Must(t, errors.Join(job.Spool(&out, shm.ClockTuple{Ticks: ticks, Raw: ticks, Mono: ticks, Real: ticks}),
			shmtest.SpoolEnd(&out)))
		file, dir := writeSpool(t, out.Bytes())
		testkit.Must(t, convert(file, dir))
		p := onlyShard(t, dir).Process
		testkit.Check(t, p.Counts.Oddities["BROKEN_COMMS"] == 1, "%+v: %v", size, p.Counts.Oddities)
		res, err := scorep.Unify(dir, nil)
		testkit.Check(t, err == nil && len(res.Problems) == 0 && res.Damaged == 0, "%+v: %v, %+v", size, err, res)
	}
}
