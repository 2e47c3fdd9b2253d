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
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var (
	builds     = map[string]error{} // by sanitizer
	buildsLock sync.Mutex
	buildsDir  string
)

// Main runs the tests of a package, and then removes what Build has made for them.
func Main(m *testing.M) {
	var err error
	if buildsDir, err = os.MkdirTemp("", "replay-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildsDir)
	os.Exit(code)
}

// root returns the module's folder: the nearest one at or above the package under test that has a go.mod.
func root() string {
	for dir, _ := os.Getwd(); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == "/" {
			return dir
		}
	}
}

// Build returns the folder with the host (replay.HostFile) and the recording plugins, built once for each sanitizer
// ("": none). It requires Main.
func Build(t testing.TB, sanitizer string) string {
	t.Helper()
	for _, tool := range []string{"make", "cc"} {
		need.Program(t, tool, "to build the host")
	}
	buildsLock.Lock()
	defer buildsLock.Unlock()
	dir := filepath.Join(buildsDir, "build-"+sanitizer)
	testkit.Watch(t, root()+"/internal/replay/host", root()+"/tests/recorder", root()+"/plugin")
	err, done := builds[sanitizer]
	if !done {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "make", "-f", "tests/recorder/recorder.mk", "recorder", "BUILD="+dir,
			"SANITIZE="+sanitizer)
		cmd.Dir = root()
		// Do not pass on variables and jobs of a make that runs these tests.
		for _, kv := range os.Environ() {
			if !strings.HasPrefix(kv, "MAKE") && !strings.HasPrefix(kv, "MFLAGS=") {
				cmd.Env = append(cmd.Env, kv)
			}
		}
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		builds[sanitizer] = err
	}
	if err != nil {
		if sanitizer != "" && strings.Contains(err.Error(), "cannot find") {
			need.NoError(t, "the library of -fsanitize="+sanitizer, err)
		}
		t.Fatalf("building the host: %v", err)
	}
	return dir
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
