// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries := testkit.Value(os.ReadDir(dir))(t)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func content(t *testing.T, path string) string {
	t.Helper()
	text := testkit.Read(t, path)
	return string(text)
}

func TestAFileAppearsAsAWhole(t *testing.T) {
	for _, l := range []Lasting{Volatile, Durable} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		testkit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
		f := testkit.Value(Create(path, 0o666))(t)
		testkit.Value(f.Write([]byte("new")))(t)
		testkit.Equal(t, content(t, path), "old", "before Commit")
		testkit.Must(t, f.Commit(l))
		testkit.Equal(t, content(t, path), "new", "after Commit")
		err := f.Abandon()
		testkit.Check(t, err == nil && content(t, path) == "new", "Abandon behind Commit: %v", err)
		err = f.Commit(l)
		testkit.Check(t, errors.Is(err, fs.ErrClosed), "a second Commit: %v", err)
		got := names(t, dir)
		testkit.Check(t, len(got) == 1, "left: %v", got)
	}
}

func TestModesAreThoseAskedForLessTheUmask(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for mode, want := range map[fs.FileMode]fs.FileMode{0o644: 0o640, 0o600: 0o600, 0o666: 0o640} {
		path := filepath.Join(t.TempDir(), "file")
		testkit.Must(t, Write(path, mode, nil, Volatile))
		info := testkit.Value(os.Stat(path))(t)
		testkit.Equal(t, info.Mode(), want, "%v", mode)
	}
}

func TestAfterAnErrorThereIsWhatWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	testkit.Must(t, os.MkdirAll(filepath.Join(path, "inside"), 0o700)) // a folder that is not empty is not replaced
	for _, l := range []Lasting{Volatile, Durable} {
		testkit.Check(t, Write(path, 0o600, []byte("new"), l) != nil, "written")
		got := names(t, dir)
		testkit.Check(t, slices.Equal(got, []string{"file"}), "left: %v", got)
	}
	f := testkit.Value(Create(path, 0o600))(t)
	testkit.Must(t, f.Abandon())
	testkit.Must(t, f.Abandon())
	got := names(t, dir)
	testkit.Check(t, slices.Equal(got, []string{"file"}), "left: %v", got)
	testkit.Check(t, len(pending.paths) == 0, "to be removed by a signal: %v", pending.paths)
}

func TestLongNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	testkit.Must(t, Write(path, 0o600, []byte("x"), Durable))
}

// In a folder of ours whatever has the name is replaced, and nothing that it leads to is touched.
func TestCreateFollowsNothing(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	testkit.Must(t, os.WriteFile(victim, []byte("precious"), 0o644))
	testkit.Must(t, os.Symlink(victim, filepath.Join(dir, "link")))
	testkit.Must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, name := range []string{"link", "pipe"} {
		path := filepath.Join(dir, name)
		testkit.Must(t, Write(path, 0o600, []byte("new"), Durable))
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || content(t, path) != "new" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	testkit.Check(t, content(t, victim) == "precious", "the file behind the link was written to")
}

func output(t *testing.T, path, text string) error {
	t.Helper()
	f, err := Output(path, 0o644)
	if err != nil {
		return err
	}
	defer f.Abandon()
	if _, err := f.Write([]byte(text)); err != nil {
		return err
	}
	return f.Commit(Durable)
}

// What a user names and is no file stays what it is.
func TestOutputWritesThroughWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	testkit.Must(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- string(text)
	}()
	testkit.Must(t, output(t, pipe, "through"))
	testkit.Equal(t, <-read, "through", "<-read")
	info, err := os.Lstat(pipe)
	testkit.Check(t, err == nil && info.Mode()&fs.ModeNamedPipe != 0, "%v, %v", info, err)
	got := names(t, dir)
	testkit.Check(t, len(got) == 1, "left: %v", got)

	testkit.Must(t, output(t, os.DevNull, "gone"))
	err = output(t, "/dev/full", "no room")
	testkit.Check(t, errors.Is(err, syscall.ENOSPC), "/dev/full: %v", err)
	for _, device := range []string{os.DevNull, "/dev/full"} {
		if info, err := os.Lstat(device); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			t.Fatalf("%s is a device no more: %v, %v", device, info, err)
		}
	}
	testkit.Check(t, output(t, dir, "x") != nil, "a folder was written to")
}

func TestOutputGoesToStandardOutputWhateverItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	testkit.Must(t, err)
	defer out.Close()
	testkit.Value(out.WriteString("before, "))(t)
	was := testkit.Value(syscall.Dup(1))(t)
	defer syscall.Close(was)
	testkit.Must(t, syscall.Dup3(int(out.Fd()), 1, 0))
	err = output(t, "/dev/stdout", "behind")
	testkit.Must(t, syscall.Dup3(was, 1, 0))
	got := content(t, path)
	testkit.Check(t, err == nil && got == "before, behind", "%q, %v", got, err)
}

// A link stays, what it leads to is replaced as a whole.
func TestOutputFollowsTheUsersLinks(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "there"), 0o700))
	target := filepath.Join(dir, "there", "target")
	for link, to := range map[string]string{"absolute": target, "relative": "there/target", "chain": "relative",
		"up": "there/../there/target"} {
		path := filepath.Join(dir, link)
		testkit.Must(t, os.Symlink(to, path))
	}
	for _, link := range []string{"absolute", "relative", "chain", "up"} {
		testkit.Must(t, os.WriteFile(target, []byte("old"), 0o600))
		kept := filepath.Join(dir, "kept")
		testkit.Must(t, os.Link(target, kept))
		testkit.Must(t, output(t, filepath.Join(dir, link), link))
		info, err := os.Lstat(filepath.Join(dir, link))
		testkit.Check(t, err == nil && info.Mode()&fs.ModeSymlink != 0, "%s is a link no more: %v, %v", link, info, err)
		testkit.Check(t, content(t, target) == link && content(t, kept) == "old",
			"%s: %q, and a second name of the old file %q", link, content(t, target), content(t, kept))
		testkit.Must(t, os.Remove(kept))
	}
	testkit.Must(t, os.Remove(target)) // links may lead to what is not there yet
	testkit.Must(t, output(t, filepath.Join(dir, "chain"), "made"))
	testkit.Equal(t, content(t, target), "made", "content(t, target)")
	testkit.Must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	err := output(t, filepath.Join(dir, "loop"), "x")
	testkit.Check(t, errors.Is(err, syscall.ELOOP), "a loop: %v", err)
}

func TestOutputRefusesWhatAnotherHasPlanted(t *testing.T) {
	need.Root(t, "make another user's files")
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	testkit.Must(t, os.WriteFile(victim, []byte("precious"), 0o644))
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	testkit.Must(t, os.Symlink(victim, link))
	testkit.Must(t, syscall.Mkfifo(pipe, 0o666))
	for _, path := range []string{link, pipe} {
		testkit.Must(t, os.Lchown(path, 65534, 65534))
		err := output(t, path, "x")
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "of user 65534"), "%s: %v", path, err)
	}
	testkit.Check(t, content(t, victim) == "precious", "the file behind the link was written to")
}

// What can only be written to a regular file leaves devices and pipes as they are, also behind links.
func TestOutputFileReplacesNoDevice(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	testkit.Must(t, errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("pipe", link)))
	for _, path := range []string{pipe, link, "/dev/null"} {
		before := testkit.Value(os.Stat(path))(t)
		if f, err := OutputFile(path, 0o644); err == nil {
			f.Abandon()
			t.Errorf("%s: no error", path)
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("%s: %v is now %v, %v", path, before.Mode(), after, err)
		}
	}
}

// In place everybody who has the file sees what is written, and a symbolic link is not followed.
func TestInPlace(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "name"), filepath.Join(dir, "other")
	for _, text := range []string{"a longer text", "short"} {
		f, err := InPlace(name, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Commit(Volatile)
		}
		testkit.Must(t, err)
		if _, err := os.Stat(other); err != nil {
			testkit.Must(t, os.Link(name, other))
		}
		got, err := os.ReadFile(other)
		testkit.Check(t, err == nil && string(got) == text, "%q, %v; want %q", got, err, text)
	}
	files, err := os.ReadDir(dir)
	testkit.Check(t, err == nil && len(files) == 2, "%v, %v", files, err)
	link := filepath.Join(dir, "link")
	testkit.Must(t, os.Symlink(name, link))
	_, err = InPlace(link, 0o600)
	testkit.Check(t, err != nil, "written through a link")
}
