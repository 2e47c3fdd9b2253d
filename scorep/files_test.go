// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Others can make names in the experiment directory before Unify does. Whatever they point to stays
// what it is, and either the archive is made beside them or the error names them.
func TestPlantedNamesDoNoHarm(t *testing.T) {
	for _, c := range []struct {
		name  string // in the experiment directory
		plant func(victim, path string) error
		want  string // part of the error or of a problem; "" if an archive is made nonetheless
	}{
		{"traces.otf2", os.Symlink, ""},
		{"traces.def", os.Symlink, ""},
		{"traces.marker", os.Symlink, ""},
		{"traces", linkFolder, ""},
		{"traces.new", linkFolder, ""},
		{"traces.new", os.Symlink, ""},
		{"run-1", linkFolder, "run-1"},
		{"shards/unify.lock", os.Symlink, "lock experiment directory"},
		{"shards/unify.lock", os.Link, "not a file itself"},
		{"shards/unify.lock", pipe, "not a file itself"},
		{"shards/uuid-01/1.evt", os.Symlink, "not a regular file"},
		{"shards/uuid-01/shard.json", os.Symlink, "uuid-01 is left out"},
		{"shards/uuid-01/shard.json", pipe, "uuid-01 is left out"},
		{"shards/uuid-01/lock", pipe, ""},
		{"shards/planted", linkFolder, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			runs := 1
			finish(job(t, dir, 2, 1, nil))
			if c.name == "run-1" {
				runs = 2
				p := shardtest.New(t, dir, "stranger").Launched("slurm", 0, 1)
				p.Call("ncclAllReduce", t0, t0+1)
				p.Finish()
			}
			outside := t.TempDir()
			victim := filepath.Join(outside, "victim")
			testkit.Write(t, victim, []byte("precious"))
			path := filepath.Join(dir, c.name)
			testkit.Must(t, os.RemoveAll(path))
			testkit.Must(t, c.plant(victim, path))
			res, err := Unify(dir, nil)
			said := ""
			if err != nil {
				said = err.Error()
			} else {
				said = strings.Join(append(res.Problems, res.Runs[0].Problems...), "\n")
				testkit.Check(t, len(res.Runs) == runs, "%+v", res)
				accept(t, res.Runs[0].Archive)
			}
			testkit.Check(t, (c.want != "" || said == "") && strings.Contains(said, c.want),
				"%q, want %q", said, c.want)
			b, err := os.ReadFile(victim)
			testkit.Check(t, err == nil && string(b) == "precious", "the victim: %q, %v", b, err)
			names, err := os.ReadDir(outside)
			testkit.Check(t, err == nil && len(names) == 1, "beside the victim: %v, %v", names, err)
		})
	}
}

func linkFolder(victim, path string) error { return os.Symlink(filepath.Dir(victim), path) }
func pipe(_, path string) error            { return syscall.Mkfifo(path, 0o600) }

func TestShardsThatAreALinkAreNoExperiment(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	finish(job(t, elsewhere, 1, 1, nil))
	testkit.Must(t, os.Symlink(filepath.Join(elsewhere, "shards"), filepath.Join(dir, "shards")))
	_, err := Unify(dir, nil)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "not an experiment directory"), "%v", err)
}

// Whoever the umask lets reads the archive, and nobody writes it; shards are their owner's only. With hard links and
// without.
func TestWhoReadsArchives(t *testing.T) {
	for _, links := range []bool{true, false} {
		if !links {
			files.Link = func(string, string) error { return syscall.EPERM }
			defer func() { files.Link = os.Link }()
		}
		dir := t.TempDir()
		procs := job(t, dir, 3, 2, func(rank int, p *shardtest.Process) { p.Network(0) })
		finish(procs[:2])
		procs[2].Flush() // so that one is copied, and there is a marker
		run := unify(t, dir, nil).Runs[0]
		files := 0
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && path != dir {
				mode := info.Mode().Perm()
				closed := strings.HasPrefix(path, filepath.Join(dir, "shards"))
				events := strings.HasSuffix(path, ".evt") // linked into the archive as their writer made them
				testkit.Check(t, mode&0o022 == 0 && (events || closed != (mode&0o044 != 0)),
					"%s: %v", path, info.Mode())
			}
			files++
			return err
		})
		testkit.Check(t, err == nil && files >= 20, "%d files, %v", files, err)
		accept(t, run.Archive)
	}
}
