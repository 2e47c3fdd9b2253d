// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestUsageOf sees memory and descriptors come and go.
func TestUsageOf(t *testing.T) {
	before := testkit.Value(UsageOf(os.Getpid()))(t)
	testkit.Check(t, before.Own >= 1<<20 && before.Threads >= 1 && before.Files >= 3, "this process has %+v", before)
	const size = 32 << 20
	fd := testkit.Value(unix.MemfdCreate("nccl-otf2", unix.MFD_CLOEXEC))(t)
	memory := os.NewFile(uintptr(fd), "nccl-otf2")
	defer memory.Close()
	testkit.Must(t, unix.Ftruncate(fd, size))
	sharedMemory := testkit.Value(unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))(t)
	defer unix.Munmap(sharedMemory)
	ownMemory := testkit.Value(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	defer unix.Munmap(ownMemory)
	for i := 0; i < size; i += os.Getpagesize() {
		sharedMemory[i], ownMemory[i] = 1, 1
	}
	after := testkit.Value(UsageOf(os.Getpid()))(t)
	// Where the program itself lies in memory (tmpfs), pages of its code that come meanwhile are shared memory, too.
	const code = 1 << 20
	shared, own := after.Shared-before.Shared, after.Own-before.Own
	testkit.Check(t, shared >= size && shared <= size+code && own >= size*9/10 && after.Files == before.Files+1,
		"before %+v, after %+v", before, after)
	// The memory is there, but nobody shares it, or only a process of the same program: a fork that is no collector
	// yet.
	fork := exec.Command(os.Args[0], "-test.run=^TestShares$")
	fork.ExtraFiles = []*os.File{memory}
	fork.Env = append(os.Environ(), shares+"=3")
	in := testkit.Value(fork.StdinPipe())(t)
	out := testkit.Value(fork.StdoutPipe())(t)
	testkit.Must(t, fork.Start())
	defer fork.Wait()
	defer in.Close()
	testkit.Value(out.Read(make([]byte, 1)))(t)
	testkit.Equal(t, len(mapped(fork.Process.Pid)), 1, "the other process shares nothing")
	pid, err := Collector(os.Getpid(), 0)
	testkit.Check(t, errors.Is(err, ErrNoCollector), "collector %d, %v", pid, err)
}

// shares has the descriptor of memory that a process of this program maps until its input ends.
const shares = "USAGE_TEST_SHARES"

func TestShares(t *testing.T) {
	text := os.Getenv(shares)
	if text == "" {
		return // the other process's part of TestUsageOf
	}
	fd := testkit.Value(strconv.Atoi(text))(t)
	testkit.Value(unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED))(t)
	os.Stdout.WriteString("m")
	io.Copy(io.Discard, os.Stdin)
}

func TestOfAProcessThatIsNone(t *testing.T) {
	u, err := UsageOf(1 << 30)
	testkit.Check(t, Ended(err), "%+v, %v", u, err)
	testkit.Check(t, !Ended(nil), "no error, and the process has ended")
}

func TestProcessorGrowsWithWork(t *testing.T) {
	before := Processor(os.Getpid())
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	after := Processor(os.Getpid())
	testkit.Check(t, after > before, "%v s before, %v s after 50 ms of work", before, after)
	testkit.Equal(t, Processor(1<<30), 0, "s of a process that is none")
}
