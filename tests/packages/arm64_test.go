// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
)

// sysroot is where Debian's package has the C library of arm64.
const sysroot = "/usr/aarch64-linux-gnu"

// What is made for arm64 records, reports and draws, run by qemu. Of one thing qemu's user mode is not capable: a child that has no exit
// signal, as collectors are. So the plugin writes raw files, and says so.
func TestArchiveRecordsOnArm64(t *testing.T) {
	file := packages(t, "*-linux-aarch64.tar.gz", 1)[0]
	p := place{dir: t.TempDir()}
	if nativeMachine(t) != "aarch64" {
		_, err := os.Stat("/proc/sys/fs/binfmt_misc/qemu-aarch64")
		need.NoError(t, "programs of arm64 (Debian: qemu-user-static binfmt-support, and binfmt_misc mounted)", err)
		_, err = os.Stat(filepath.Join(sysroot, "lib/ld-linux-aarch64.so.1"))
		need.NoError(t, "arm64's C library (Debian: libc6-arm64-cross)", err)
		p.env, p.raw = []string{"QEMU_LD_PREFIX=" + sysroot}, true
	}
	p.records(t, filepath.Join(unpack(t, file, t.TempDir()), "bin/nccl-otf2"))
}
