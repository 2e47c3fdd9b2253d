// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// sysroot is where Debian's package has the C library of arm64.
const sysroot = "/usr/aarch64-linux-gnu"

// What is made for arm64 records, reports and draws, run by qemu, calls and operations of one job and everything of
// another. Of one thing qemu's user mode is not capable: a child without an exit signal, as collectors are. So the
// plugin writes raw files.
func TestArchiveRecordsOnArm64(t *testing.T) {
	file := packages(t, "*-linux-aarch64.tar.gz", 1)[0]
	if nativeMachine(t) == "aarch64" {
		t.Skip("TestArchiveRecords does all of it here")
	}
	qemu := need.Program(t, "qemu-aarch64-static", "package qemu-user-static")
	_, err := os.Stat(filepath.Join(sysroot, "lib/ld-linux-aarch64.so.1"))
	need.NoError(t, "arm64's C library (Debian: libc6-arm64-cross)", err)
	root := unpack(t, file, t.TempDir())
	for recording, events := range map[string]string{"09-straggler-4p": "gpu", "02-allcoll-4p-net": "all"} {
		t.Run(recording, func(t *testing.T) {
			p := place{dir: t.TempDir(), env: []string{"NCCL_PROFILER_PLUGIN=" +
				filepath.Join(root, "lib/libnccl-profiler-otf2.so"),
				"NCCL_ALLGATHERV_ENABLE=0", "NCCL_RUNTIME_CONNECT=0", "NCCL_OTF2_CLOCK=host", "NCCL_OTF2_DIR=exp",
				"NCCL_OTF2_EVENTS=" + events}}
			tool := func(args ...string) string {
				return p.run(t, qemu, append([]string{"-L", sysroot, filepath.Join(root, "bin/nccl-otf2")}, args...)...)
			}
			p.plays(t, recording, qemu+" -L "+sysroot+" "+filepath.Join(root, replay.HostFile))
			raw, err := filepath.Glob(filepath.Join(p.dir, "exp/shards/*.spool"))
			testkit.Check(t, err == nil && len(raw) == 4, "raw files: %q (%v)", raw, err)
			tool("unify", "exp")
			said := tool("check", "exp")
			testkit.Check(t, strings.HasPrefix(said, "no findings "), "check says %s", said)
			if events == "gpu" {
				answers(t, tool("report", "exp"))
			}
			tool("timeline", "exp")
		})
	}
}
