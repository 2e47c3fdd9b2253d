// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// imageFromRecipe builds the image of the recipe on a base that is a root, with buildah, which needs neither a daemon
// nor a registry, and records in it.
func imageFromRecipe(t *testing.T, root, deb string) {
	t.Helper()
	buildah := need.Program(t, "buildah", "package buildah")
	recipe := packages(t, "recipes/Dockerfile", 1)[0]
	dir := t.TempDir()
	build := func(args ...string) {
		t.Helper()
		cmd := exec.Command(buildah, append([]string{"--root", filepath.Join(dir, "storage"), "--runroot",
			filepath.Join(dir, "run"), "--storage-driver", "vfs"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot")
		testkit.Output(t, cmd)
	}
	out, err := exec.Command("tar", "-C", root, "-cf", filepath.Join(dir, "root.tar"), ".").CombinedOutput()
	testkit.Require(t, err == nil, "tar: %v\n%s", err, out)
	build("from", "--name", "base", "scratch")
	build("add", "--quiet", "base", "root.tar", "/")
	build("commit", "--quiet", "base", "localhost/base")
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "context"), 0o777))
	text := testkit.Read(t, deb)
	testkit.Write(t, filepath.Join(dir, "context", filepath.Base(deb)), text)
	build("bud", "--pull=never", "--build-arg", "BASE=localhost/base", "--tag", "localhost/recorded", "--file", recipe,
		"context")
	build("from", "--pull=never", "--name", "job", "localhost/recorded")
	for _, command := range [][]string{
		{"replay", "09-straggler-4p", "--clock", "recorded", "--dir", "/tmp/exp"}, {"report", "/tmp/exp"},
		{"timeline", "/tmp/exp"},
	} {
		build(append([]string{"run", "job", "nccl-otf2"}, command...)...)
	}
}
