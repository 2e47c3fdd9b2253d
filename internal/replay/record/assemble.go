// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// recordMode is the value of the setting MODE that makes the plugin record callbacks.
const recordMode = "record"

// IsRecording reports whether a process recorded its callbacks. Its shard has no events.
func IsRecording(p *description.Process) bool { return p != nil && p.Settings["MODE"] == recordMode }

// Assemble makes recordings for `nccl-otf2 replay` from the callbacks that the processes of finished jobs recorded: it
// names the files in the order of the ranks and writes run.json. It returns the folders: <experiment>/recording, and
// run-2, run-3, … in it if several jobs shared the directory. It leaves out jobs with processes that are still
// running, and does not touch recordings assembled before. The last collector of a job calls it, and so does unify; a
// lock keeps them from interfering.
func Assemble(directory string) (folders []string, err error) {
	root := filepath.Join(directory, Folder)
	unlock, err := lockFolder(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing has been recorded
	} else if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := experiment.List(directory)
	if err != nil {
		return nil, err
	}
	var parts []recordedProcess
	for _, e := range entries {
		if !IsRecording(e.Process) {
			continue
		}
		path := filepath.Join(root, filepath.Base(e.Path)+recording.CallsSuffix)
		if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() {
			parts = append(parts, recordedProcess{e, path})
		}
	}
	for _, job := range jobsOf(parts) {
		if slices.ContainsFunc(job, func(p recordedProcess) bool {
			return p.State == experiment.Writing ||
				p.State == experiment.Starting
		}) {
			continue
		}
		folder, err := newRunFolder(root)
		if err != nil {
			return folders, err
		}
		if err := assemble(folder, job); err != nil {
			return folders, err
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

// lockFolder locks a folder. It waits a while for other holders, which take milliseconds.
func lockFolder(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch err := flock.Await(int(dir.Fd()), time.Now().Add(10*time.Second)); {
	case err == nil, flock.IsUnsupported(err):
		return func() { _ = flock.Unlock(dir) }, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		dir.Close()
		return nil, fmt.Errorf("another process is working in %s", path)
	default:
		dir.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
}

// recordedProcess is one process's transcript.
type recordedProcess struct {
	experiment.Entry
	file string
}

// newRunFolder returns the folder for the next job's recording.
func newRunFolder(root string) (string, error) {
	folder := root
	for n := 2; ; n++ {
		_, err := os.Lstat(filepath.Join(folder, recording.RunFile))
		if errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		folder = filepath.Join(root, "run-"+strconv.Itoa(n))
	}
	if folder != root {
		if err := os.Mkdir(folder, experiment.FolderMode); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return folder, nil
}

// jobsOf groups processes by job: processes with a communicator in common, and processes that a launcher numbered
// together and that ran at the same time.
func jobsOf(parts []recordedProcess) [][]recordedProcess {
	var jobs [][]recordedProcess
	for _, p := range parts {
		job := []recordedProcess{p}
		jobs = slices.DeleteFunc(jobs, func(other []recordedProcess) bool {
			if !slices.ContainsFunc(other, func(q recordedProcess) bool { return together(p.Process, q.Process) }) {
				return false
			}
			job = append(other, job...)
			return true
		})
		jobs = append(jobs, job)
	}
	slices.SortStableFunc(jobs, func(a, b []recordedProcess) int { return cmp.Compare(begin(a), begin(b)) })
	return jobs
}

func begin(job []recordedProcess) uint64 {
	first := job[0].Process.FirstTime
	for _, p := range job {
		first = min(first, p.Process.FirstTime)
	}
	return first
}

func together(a, b *description.Process) bool {
	if a.FirstTime > b.LastTime || b.FirstTime > a.LastTime {
		return false
	}
	if a.Launcher.Size > 1 && a.Launcher.Name == b.Launcher.Name && a.Launcher.Size == b.Launcher.Size &&
		a.Launcher.Rank != b.Launcher.Rank {
		return true
	}
	return slices.ContainsFunc(a.Comms, func(c description.Comm) bool {
		return c.ID != 0 && slices.ContainsFunc(
			b.Comms, func(d description.Comm) bool { return c.ID == d.ID && c.NRanks == d.NRanks })
	})
}

// sortRanks sorts the processes of a job by their ranks: the launcher's, or those in the largest communicator.
func sortRanks(job []recordedProcess) {
	numbered := !slices.ContainsFunc(job, func(p recordedProcess) bool { return p.Process.Launcher.Rank < 0 })
	rank := func(p *description.Process) int {
		if numbered {
			return p.Launcher.Rank
		}
		best := description.Comm{Rank: -1}
		for _, c := range p.Comms {
			if c.NRanks > best.NRanks || c.NRanks == best.NRanks && c.Rank < best.Rank {
				best = c
			}
		}
		return best.Rank
	}
	slices.SortStableFunc(job, func(a, b recordedProcess) int {
		p, q := a.Process, b.Process
		return cmp.Or(cmp.Compare(rank(p), rank(q)), cmp.Compare(p.Host, q.Host), cmp.Compare(p.PID, q.PID),
			cmp.Compare(p.PIDStart, q.PIDStart))
	})
}

// assemble makes the recording of one job.
func assemble(folder string, job []recordedProcess) error {
	sortRanks(job)
	first := job[0].Process
	run := recording.Run{
		Name: filepath.Base(filepath.Dir(folder)), API: first.APIVersion, Library: strings.ToLower(first.Library),
		Processes: len(job), Driving: "recorded by nccl-otf2", Options: []string{}, Env: map[string]string{},
		ExitOK: true,
		Calls:  map[string]int{}, Starts: map[string]int{}, States: map[string]int{},
		What: fmt.Sprintf("callbacks of %s, written down by nccl-otf2", first.Executable),
	}
	maps.Copy(run.Env, first.LibrarySettings)
	var known bool
	if run.NCCL, known = release(first.LibraryVersion, first.APIVersion); !known {
		run.Guessed = true
		run.What += "; the release is guessed from the plugin API"
	}
	for k, p := range job {
		ranks := make(map[uint64]int)
		for _, c := range p.Process.Comms {
			ranks[c.ID]++
			run.RanksPerProcess = max(run.RanksPerProcess, ranks[c.ID])
		}
		run.ExitOK = run.ExitOK && p.State == experiment.Done && p.Process.Finished
		file := recording.File{File: recording.Calls(k), PID: p.Process.PID}
		err := EachLine(p.file, func(line []byte) error {
			file.Lines++
			kind := quoted(line, `"f":"`)
			run.Calls[kind]++
			switch kind {
			case "start":
				typ := quoted(line, `"typeName":"`)
				run.Starts[typ]++
				run.SocketProfiling = run.SocketProfiling || typ == shm.EventNetPlugin.String()
			case "state":
				run.States[quoted(line, `"stateName":"`)]++
			}
			return nil
		})
		if err != nil {
			return err
		}
		run.Files = append(run.Files, file)
	}
	run.RanksPerProcess = max(run.RanksPerProcess, 1)
	out, err := json.MarshalIndent(&run, "", " ")
	if err != nil {
		return err
	}
	for k, p := range job {
		if err := os.Rename(p.file, filepath.Join(folder, run.Files[k].File)); err != nil {
			return err
		}
	}
	return atomicfile.Write(filepath.Join(folder, recording.RunFile), experiment.FileMode, append(out, '\n'),
		atomicfile.Durable)
}

// quoted returns the string after a name in a line that a Transcript wrote. It is for names of events and states,
// which have no escapes.
func quoted(line []byte, name string) string {
	_, rest, ok := bytes.Cut(line, []byte(name))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(value)
}

// release formats NCCL's version number as a release. If the version is unknown, it returns the first release with
// that API, and false.
func release(version, apiVersion int) (string, bool) {
	if version >= 10000 {
		return fmt.Sprintf("%d.%d.%d", version/10000, version/100%100, version%100), true
	}
	return api.Versions[max(1, min(apiVersion, api.Newest().Number))-1].Release, false
}
