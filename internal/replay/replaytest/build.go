// SPDX-License-Identifier: Apache-2.0

// Package replaytest builds, for tests, the host that plays recordings and the plugins that record what they hear.
package replaytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// root returns the module's folder: the nearest one at or above the package under test that has a go.mod.
func root() string {
	for dir, _ := os.Getwd(); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == "/" {
			return dir
		}
	}
}

var builds sync.Map // by sanitizer, func() (folder string, err error)

// Build returns the folder with the host (replay.HostFile) and the recording plugins, for each sanitizer ("": none).
func Build(t testing.TB, sanitizer string) string {
	t.Helper()
	for _, tool := range []string{"make", "cc"} {
		need.Program(t, tool, "to build the host")
	}
	testkit.Watch(t, root()+"/internal/replay/host", root()+"/tests/recorder", root()+"/plugin")
	build, _ := builds.LoadOrStore(sanitizer, sync.OnceValues(func() (string, error) {
		return Make(sanitizer, "-f", "tests/recorder/recorder.mk", "recorder")
	}))
	dir, err := build.(func() (string, error))()
	if err != nil && sanitizer != "" && strings.Contains(err.Error(), "cannot find") {
		need.NoError(t, "the library of -fsanitize="+sanitizer, err)
	}
	testkit.Require(t, err == nil, "building the host: %v", err)
	return dir
}

// folders are those below build/ that have what is built with a sanitizer; `make sanitize` builds there, too.
var folders = map[string]string{"": "recorder", "address,undefined": "asan", "thread": "tsan"}

// Make makes something in the folder of a sanitizer ("": none), which it returns: what one package's tests have built
// others find. It waits for those of another package that build there.
func Make(sanitizer string, args ...string) (dir string, err error) {
	dir = filepath.Join(root(), "build", folders[sanitizer])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", append([]string{"BUILD=" + filepath.Join("build", folders[sanitizer]),
		"SANITIZE=" + sanitizer}, args...)...)
	cmd.Dir = root()
	// Do not pass on variables and jobs of a make that runs these tests.
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MAKE") && !strings.HasPrefix(kv, "MFLAGS=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
}

// Sanitizers calls test with each sanitizer's build, and with the environment that makes the host abort at its first
// fault.
func Sanitizers(t *testing.T, test func(t *testing.T, dir string, env []string)) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: -short leaves out the sanitizers, which need two more builds of the host")
	}
	for sanitizer, settings := range map[string]string{
		"thread":            "TSAN_OPTIONS=halt_on_error=1:exitcode=66",
		"address,undefined": "ASAN_OPTIONS=detect_leaks=1:exitcode=66",
	} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			test(t, Build(t, sanitizer), []string{settings, "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"})
		})
	}
}
