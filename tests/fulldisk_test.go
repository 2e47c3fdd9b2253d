// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// fullDisk makes a file system with room for so many KiB.
func fullDisk(t *testing.T, kib int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	switch err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)); {
	case err == nil:
	case os.Geteuid() == 0 && os.Getenv("CI") == "true":
		t.Fatalf("root cannot mount: %v", err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// copyOf copies an experiment directory to a disk that has room for the archive.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	testkit.Must(t, os.CopyFS(to, os.DirFS(dir)))
	testkit.Must(t, os.Chmod(filepath.Join(to, "shards"), 0o700))
	return to
}

// toolSays runs the tool, and returns what it says and its exit code.
func toolSays(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(builtFile(t, "nccl-otf2"), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}

// What a raw file has no room for is counted in the file itself, by the kinds of events: what is in the archive and
// what is counted as lost are together what was made. The process is not said to have died of it.
func TestRawFilesOnAFullDisk(t *testing.T) {
	const calls = 6000
	for _, kib := range []int{32, 96, 128, 200, 300, 450, 700, 6000} { // of the disk
		for _, way := range []string{"return", "finalize"} {
			t.Run(fmt.Sprintf("%dk %s", kib, way), func(t *testing.T) {
				dir := filepath.Join(fullDisk(t, kib), "experiment")
				j := begin(t, dir, bySpool, calls, way, 0, "LIFE_RANKS=2")
				j.goOn()
				status := j.end()
				testkit.Require(t, status == 0, "the host ended with %d\n%s", status, j.stderr.String())
				full := kib < 1000
				n := strings.Count(j.stderr.String(), "could not be written to the raw file")
				testkit.Check(t, (!full || way != "finalize" || n == 1) && (full || n == 0),
					"the log has %d lines of losses:\n%s", n, j.stderr.String())
				exp := copyOf(t, dir)
				said, code := toolSays(t, "unify", exp)
				testkit.Check(t, code == 0 && !strings.Contains(said, "ended without exit") &&
					full == strings.Contains(said, "not recorded"), "unify ended with %d:\n%s", code, said)
				p := shards(t, exp)[0]
				testkit.Check(t, p.End.Called && len(p.Counts.Uncounted) == 0,
					"end %+v, not counted %q", p.End, p.Counts.Uncounted)
				for _, kind := range []string{"Coll", "CollApi", "Group", "GroupApi"} {
					kept, lost := p.Counts.Starts[kind], p.Counts.Lost["disk"][kind]
					testkit.Check(t, kept+lost == calls && full == (lost > 0),
						"%s: %d kept and %d lost of %d", kind, kept, lost, calls)
				}
				lost := fmt.Sprintf("%d disk coll api", p.Counts.Lost["disk"]["CollApi"])
				for _, command := range []string{"report", "check"} {
					said, _ := toolSays(t, command, exp)
					testkit.Check(t, full == strings.Contains(said, lost), "%s says of %s:\n%s", command, lost, said)
				}
			})
		}
	}
}

// A raw file without its end, and without a word of why, is of a process that was killed: nobody knows how much is
// missing, and everybody says so. So it is if the disk was full and the process was killed, which then is not said to
// have been damaged by it.
func TestRawFilesWithoutTheirEnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		kib  int
		code int
		want string
	}{
		{"killed", 64 << 10, 0, "ended without exit"},
		{"killed with a full disk", 300, 1, "no space left on device"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(fullDisk(t, tc.kib), "experiment")
			j := begin(t, dir, bySpool, 6000, "killed", 0, "LIFE_RANKS=2")
			j.settle()
			j.goOn()
			j.end()
			exp := copyOf(t, dir)
			said, code := toolSays(t, "unify", exp)
			testkit.Check(t, code == tc.code && strings.Contains(said, tc.want) &&
				strings.Contains(said, "an unknown number of events is missing"), "unify ended with %d:\n%s", code,
				said)
			for _, command := range []string{"report", "check"} {
				said, got := toolSays(t, command, exp)
				testkit.Contains(t, said, "an unknown number")
				testkit.Check(t, command != "check" || got == tc.code, "check ended with %d:\n%s", got, said)
			}
			m := shards(t, exp)[0].Markers
			testkit.Check(t, len(m) == 1 && m[0].Category == "NCCL raw file", "markers %v", m)
		})
	}
}

// An empty raw file is named: somebody was there, and nothing is known of what it recorded.
func TestEmptyRawFilesAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "experiment")
	j := begin(t, dir, bySpool, 100, "return", 0, "LIFE_RANKS=2")
	testkit.Value(io.WriteString(j.stdin, "go on\n"))(t)
	j.end()
	testkit.Write(t, filepath.Join(dir, "shards", "other-17-4711.spool"), nil)
	said, code := toolSays(t, "unify", dir)
	testkit.Check(t, code == 0 && strings.Contains(said, "other-17-4711.spool is empty"),
		"unify ended with %d:\n%s", code, said)
}
