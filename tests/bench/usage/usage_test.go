// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOf sees memory and descriptors come and go.
func TestOf(t *testing.T) {
	before, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before.Own < 1<<20 || before.Threads < 1 || before.Files < 3 {
		t.Errorf("this process has %+v", before)
	}
	const size = 32 << 20
	fd, err := unix.MemfdCreate("nccl-otf2", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	shared, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(shared)
	own, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(own)
	for i := 0; i < size; i += os.Getpagesize() {
		shared[i], own[i] = 1, 1
	}
	after, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after.Shared-before.Shared != size || after.Own-before.Own < size*9/10 || after.Files != before.Files+1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	// The memory is there, but nobody shares it.
	if pid, err := Collector(os.Getpid(), 0); !errors.Is(err, ErrNoCollector) {
		t.Errorf("collector %d, %v", pid, err)
	}
}

func TestOfAProcessThatIsNone(t *testing.T) {
	if u, err := Of(1 << 30); !Ended(err) {
		t.Errorf("%+v, %v", u, err)
	}
	if Ended(nil) {
		t.Error("no error, and the process has ended")
	}
}
