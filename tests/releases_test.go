// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// left unpacks what a release left of a job, and gives the experiment directory.
func left(t *testing.T, release, name string) (dir string) {
	t.Helper()
	folder := t.TempDir()
	archive := testkit.Value(filepath.Abs(filepath.Join("../testdata/releases", release, name+".tar.gz")))(t)
	testkit.Output(t, exec.Command("tar", "-xzf", archive, "-C", folder))
	return filepath.Join(folder, name)
}

// operationsOf is what the report has of operations, waits and the verdict.
func operationsOf(t *testing.T, dir string) (all map[string]any) {
	t.Helper()
	var report map[string]any
	testkit.Must(t, json.Unmarshal([]byte(runTool(t, builtFile(t, "nccl-otf2"), "report", dir, "--format", "json")),
		&report))
	all = make(map[string]any)
	for _, part := range []string{"operations", "waits", "verdict"} {
		testkit.Require(t, report[part] != nil, "%s: the report has no %s", dir, part)
		all[part] = report[part]
	}
	return all
}

// Archives of earlier releases, and the shards that they were made of, are read as ever: the same operations, waits and
// verdict, before and after an archive is made of the shards anew.
func TestReleasesStayReadable(t *testing.T) {
	tool := builtFile(t, "nccl-otf2")
	releases, err := filepath.Glob("../testdata/releases/*/straggler.tar.gz")
	testkit.Require(t, err == nil && len(releases) != 0, "no releases (%v)", err)
	for _, path := range releases {
		release := filepath.Base(filepath.Dir(path))
		for name, answer := range map[string]string{
			"straggler": `(?m)^Rank 2 on node1 made the others wait: 89 % of 255 ms waited, summed over 4 ranks\.`,
			"network":   `(?m)^  operations +33 in 92 calls`} {
			t.Run(release+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := left(t, release, name)
				said := runTool(t, tool, "report", dir)
				testkit.Check(t, regexp.MustCompile(answer).MatchString(said), "no %s in\n%s", answer, said)
				said = runTool(t, tool, "check", dir)
				testkit.Check(t, strings.HasPrefix(said, "no findings "), "check: %s", said)
				before := operationsOf(t, dir)
				runTool(t, tool, "unify", dir)
				testkit.Same(t, before, operationsOf(t, dir))
			})
		}
		t.Run(release+"/profile", func(t *testing.T) {
			t.Parallel()
			dir := left(t, release, "profile")
			testkit.Contains(t, runTool(t, tool, "print", "--cube", filepath.Join(dir, "profile.cubex")), "AllReduce")
		})
	}
}

// Shards of profile mode are for the tool of the same build. Where none of them can be read, the profile that was made
// of them stays.
func TestProfileStaysWhereShardsCannotBeRead(t *testing.T) {
	dir := left(t, "0.1.0", "profile")
	file := filepath.Join(dir, "profile.cubex")
	before := testkit.Read(t, file)
	for _, command := range []string{"profile", "unify"} {
		out, err := exec.Command(builtFile(t, "nccl-otf2"), command, dir).CombinedOutput()
		if err == nil || !regexp.MustCompile(`nothing can be read: .*version 1, this program reads \d`).Match(out) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		testkit.Check(t, bytes.Equal(before, testkit.Read(t, file)), "%s has made another profile", command)
	}
}

// Raw files are memory as the plugin had it, for the tool of the same build: those of a release with another layout are
// refused, and the message says of which version they are. Nothing of them is changed or removed.
func TestRawFilesOfAnotherReleaseAreRefused(t *testing.T) {
	dir := left(t, "0.1.0", "raw")
	before, err := filepath.Glob(filepath.Join(dir, "shards/*.spool"))
	testkit.Require(t, err == nil && len(before) == 2, "%q, %v", before, err)
	out, err := exec.Command(builtFile(t, "nccl-otf2"), "unify", dir).CombinedOutput()
	testkit.Check(t, err != nil && regexp.MustCompile(`layout version 5 .*this program reads version \d`).Match(out),
		"%v\n%s", err, out)
	after, err := filepath.Glob(filepath.Join(dir, "shards/*.spool"))
	testkit.Check(t, err == nil && len(after) == 2, "left of them: %q, %v", after, err)
}
