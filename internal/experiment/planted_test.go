// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// victim is a file outside the experiment directory that nothing may change.
func victim(t *testing.T) (path string, unharmed func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "victim")
	testkit.Write(t, path, []byte("precious"))
	return path, func() {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
			t.Errorf("the file that a planted link points to: %q, %v", b, err)
		}
	}
}

func TestLinksThatOthersPlantedAreNotFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, dir, target string)
		want  string
	}{
		{"shards points elsewhere", func(t *testing.T, dir, target string) {
			link(t, filepath.Dir(target), filepath.Join(dir, Folder))
		}, "a symbolic link"},
		{"shards points inside", func(t *testing.T, dir, target string) {
			mkdir(t, filepath.Join(dir, "other"))
			link(t, "other", filepath.Join(dir, Folder))
		}, "a symbolic link"},
		{"shards is a file", func(t *testing.T, dir, target string) {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, Folder), nil, 0o600))
		}, "a file"},
		{"shards is a pipe", func(t *testing.T, dir, target string) {
			testkit.Must(t, syscall.Mkfifo(filepath.Join(dir, Folder), 0o600))
		}, "a special file"},
		{"the shard points elsewhere", func(t *testing.T, dir, target string) {
			mkdir(t, filepath.Join(dir, Folder))
			link(t, filepath.Dir(target), filepath.Join(dir, Folder, "one"))
		}, "file exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			target, unharmed := victim(t)
			c.plant(t, dir, target)
			s, err := Create(dir, "one")
			if err == nil {
				s.Close()
				t.Fatal("created")
			}
			testkit.Check(t, strings.Contains(err.Error(), c.want), "%v, want %q", err, c.want)
			unharmed()
			names, err := os.ReadDir(filepath.Dir(target))
			testkit.Check(t, err == nil && len(names) == 1, "beside the victim: %v, %v", names, err)
		})
	}
}

func TestDescriptionsAreNotWrittenThroughLinks(t *testing.T) {
	target, unharmed := victim(t)
	s := testkit.Value(Create(t.TempDir(), "one"))(t)
	defer s.Close()
	for _, name := range []string{ProcessFile, doneFile} {
		link(t, target, filepath.Join(s.Path(), name))
	}
	testkit.Must(t, s.Write(&description.Process{Version: description.Version, UUID: "one"}))
	testkit.Must(t, s.Finish())
	unharmed()
	p, err := Read(s.Path())
	testkit.Check(t, err == nil && p.UUID == "one", "%+v, %v", p, err)
	for _, name := range []string{ProcessFile, doneFile} {
		info, err := os.Lstat(filepath.Join(s.Path(), name))
		testkit.Check(t, err == nil && info.Mode().IsRegular(), "%s: %v, %v", name, info, err)
	}
}

func TestNoLinkAndNoPipeIsRead(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, Folder, "one")
	mkdir(t, filepath.Dir(one))
	mkdir(t, one)
	elsewhere := filepath.Join(t.TempDir(), "description")
	testkit.Must(t, os.WriteFile(elsewhere, []byte(`{"version":2}`), 0o600))
	link(t, elsewhere, filepath.Join(one, ProcessFile))
	testkit.Must(t, syscall.Mkfifo(filepath.Join(one, lockFile), 0o600))
	list, err := List(dir)
	testkit.Check(t, err == nil && len(list) == 1 && list[0].Process == nil && list[0].Err != nil &&
		list[0].State == Dead, "%+v, %v", list, err)
}

func TestAShardIsItsOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "experiment")
	s, err := Create(dir, "one")
	testkit.Must(t, err)
	defer s.Close()
	testkit.Must(t, s.Write(&description.Process{Version: description.Version}))
	w := testkit.Value(s.EventWriter(0, &otf2.EventWriterOptions{ChunkSize: otf2.MinChunkSize}))(t)
	testkit.Must(t, w.Close())
	if _, err := s.EventWriter(0, nil); !os.IsExist(err) {
		t.Errorf("a second event file of the location: %v", err)
	}
	err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		// Event files become part of the archive, and the experiment directory holds it; the folder between them keeps
		// others out.
		result := path == dir || filepath.Ext(path) == eventSuffix
		if err == nil && !result && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	testkit.Must(t, err)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	testkit.Must(t, os.Symlink(target, path))
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	testkit.Must(t, os.Mkdir(path, 0o700))
}

// A folder that others could take things away from is refused, and one that was exchanged is noticed.
func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	shards := filepath.Join(dir, Folder)
	for mode, allowed := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o770: false,
		0o777 | os.ModeSticky: true} {
		testkit.Must(t, errors.Join(os.RemoveAll(shards), os.Mkdir(shards, 0o700), os.Chmod(shards, mode)))
		s, err := Create(dir, "a")
		testkit.Check(t, allowed == (err == nil) &&
			(err == nil || strings.Contains(err.Error(), "can be written by others")), "%v: %v", mode, err)
		if s != nil {
			s.Close()
		}
	}
	t.Run("another user's", func(t *testing.T) {
		need.Root(t, "give folders away")
		testkit.Must(t, errors.Join(os.RemoveAll(shards), os.Mkdir(shards, 0o700), os.Chown(shards, 65534, 65534)))
		_, err := Create(dir, "a")
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "belongs to user 65534"), "%v", err)
	})
	testkit.Must(t, os.RemoveAll(shards))
	s := testkit.Value(Create(dir, "a"))(t)
	defer s.Close()
	elsewhere := t.TempDir()
	testkit.Must(t, errors.Join(os.Rename(filepath.Join(shards, "a"), filepath.Join(shards, "b")),
		os.Symlink(elsewhere, filepath.Join(shards, "a"))))
	err := s.Write(&description.Process{Version: description.Version})
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "another folder"), "%v", err)
	_, err = s.EventWriter(0, nil)
	testkit.Check(t, err != nil, "an event file is made elsewhere")
	left, err := os.ReadDir(elsewhere)
	testkit.Check(t, err == nil && len(left) == 0, "%v, %v", left, err)
}
