// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func TestReleases(t *testing.T) {
	for _, tc := range []struct {
		version, api int
		want         string
		known        bool
	}{
		{22907, 6, "2.29.7", true}, {23102, 7, "2.31.2", true}, {22304, 1, "2.23.4", true},
		{0, 6, "2.29.2", false}, {0, 1, "2.23.4", false}, {0, 99, "2.31.2", false}, {0, 0, "2.23.4", false},
	} {
		got, known := release(tc.version, tc.api)
		testkit.Check(t, got == tc.want && known == tc.known, "%d, v%d: %s, %v", tc.version, tc.api, got, known)
	}
}

// Jobs that share the directory get a recording each, with the processes in the order of their ranks.
func TestAssemble(t *testing.T) {
	dir := t.TempDir()
	write := func(uuid string, rank, size int, comm, first, last uint64) {
		p := &description.Process{Version: description.Version, UUID: uuid, PID: 10, Finished: true, APIVersion: 6,
			LibraryVersion: 22907,
			Launcher:       provenance.Launcher{Name: "torchrun", Rank: rank, Size: size},
			Settings:       map[string]string{"MODE": "record"},
			FirstTime:      first, LastTime: last, Comms: []description.Comm{{ID: comm, NRanks: 2, Rank: 1 - rank,
				Location: -1}}}
		s := testkit.Value(experiment.Create(dir, uuid))(t)
		testkit.Must(t, s.Write(p))
		script := testkit.Value(Create(dir, p, nil, &shm.Header{APIVersion: 6}))(t)
		testkit.Must(t, script.Flush())
		testkit.Must(t, script.Close())
		testkit.Must(t, s.Finish())
		testkit.Must(t, s.Close())
	}
	write("b", 0, 2, 7, 100, 200)
	write("a", 1, 2, 7, 110, 210)
	// The last collector and unify may call it at the same time.
	var made atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			folders, err := Assemble(dir)
			testkit.Check(t, err == nil && (len(folders) == 0 || folders[0] == filepath.Join(dir, "recording")),
				"%v, %v", folders, err)
			made.Add(int64(len(folders)))
		})
	}
	all.Wait()
	testkit.Require(t, made.Load() == 1, "%d recordings were made", made.Load())
	again, err := Assemble(dir)
	testkit.Check(t, err == nil && len(again) == 0, "a second time: %v, %v", again, err)
	write("c", 0, 2, 8, 300, 400)
	write("d", 1, 2, 8, 300, 400)
	write("e", 0, 1, 9, 500, 600)
	folders, err := Assemble(dir)
	testkit.Require(t, err == nil && len(folders) == 2 && filepath.Base(folders[0]) == "run-2" &&
		filepath.Base(folders[1]) == "run-3", "%v, %v", folders, err)
	for folder, want := range map[string]int{"": 2, "run-2": 2, "run-3": 1} {
		text := testkit.Read(t, filepath.Join(dir, Folder, folder, recording.RunFile))
		var run recording.Run
		testkit.Must(t, json.Unmarshal(text, &run))
		testkit.Check(t, run.Processes == want && len(run.Files) == want && run.NCCL == "2.29.7" && run.ExitOK &&
			run.RanksPerProcess == 1 && run.Calls["open"] == want && run.Files[0].Lines == 1, "%s: %+v", folder, run)
	}
}
