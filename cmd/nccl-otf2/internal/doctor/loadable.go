// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// CheckPlugin checks that a process can load the plugin at a path, and returns the versions of the profiler API that it
// exports. The loader does not reject a truncated library: the process would die of SIGBUS.
func CheckPlugin(path string) (exports []int, err error) {
	if err := CheckLibrary(path); err != nil {
		return nil, err
	}
	l, err := readLibrary(path)
	if err != nil {
		return nil, err
	}
	if exports = l.profilerVersions(); len(exports) == 0 {
		return nil, errors.New("exports no ncclProfiler_v symbol")
	}
	return exports, nil
}

// CheckLibrary checks that a process can load the shared library at a path: that it is complete, built for this
// machine, and on a file system that permits executable mappings.
func CheckLibrary(path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := readWholeELF(f)
	if err != nil {
		return err
	}
	if e.Type != elf.ET_DYN {
		return fmt.Errorf("is no shared library (%v)", e.Type)
	}
	code, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("cannot be mapped as code (%w): is its file system mounted noexec?", err)
	}
	return unix.Munmap(code)
}

// checkProgram reports whether a program can be started, which may be a script: what the plugin starts as the
// collector.
func checkProgram(path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var fs unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return errors.New("is on a file system that is mounted noexec")
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("cannot be started (%w)", err)
	}
	begin := make([]byte, 2)
	if n, _ := f.ReadAt(begin, 0); n == 2 && string(begin) == "#!" {
		return nil
	}
	_, err = readWholeELF(f)
	return err
}

// openFile opens a file. Its error omits the path, which the caller prints before it.
func openFile(path string) (*os.File, error) {
	f, err := regular.Open(path)
	var failed *fs.PathError
	switch {
	case errors.Is(err, regular.ErrIrregular):
		return nil, regular.ErrIrregular
	case errors.As(err, &failed):
		return nil, fmt.Errorf("cannot be opened: %w", failed.Err)
	}
	return f, err
}

// readWholeELF reads the headers of an ELF file for this machine, and wants all that they describe to be in the file.
func readWholeELF(f *os.File) (*elf.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var magic [len(elf.ELFMAG)]byte
	if _, err := f.ReadAt(magic[:], 0); string(magic[:]) != elf.ELFMAG {
		if err != nil && err != io.EOF {
			return nil, err
		}
		return nil, fmt.Errorf("is no ELF file (%d bytes)", info.Size())
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("is not whole: %w", err)
	}
	if own := ownMachine(); own != 0 && (e.Machine != own || e.ByteOrder != nativeOrder()) {
		return nil, fmt.Errorf("is for %v, this machine is %v", e.Machine, own)
	}
	size := uint64(info.Size())
	inFile := func(offset, length uint64) bool { return offset <= size && length <= size-offset }
	loads := 0
	for _, p := range e.Progs {
		if !inFile(p.Off, p.Filesz) {
			return nil, fmt.Errorf("is not whole: a segment (%v) ends at byte %d, the file has %d", p.Type,
				p.Off+p.Filesz, size)
		}
		if p.Type == elf.PT_LOAD {
			loads++
		}
	}
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NULL && s.Type != elf.SHT_NOBITS && !inFile(s.Offset, s.FileSize) {
			return nil, fmt.Errorf("is not whole: section %q ends at byte %d, the file has %d", s.Name,
				s.Offset+s.FileSize, size)
		}
	}
	if loads == 0 {
		return nil, fmt.Errorf("has nothing to load (%v)", e.Type)
	}
	return e, nil
}

func nativeOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}
