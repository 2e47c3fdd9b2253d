// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700),
		os.WriteFile(at("file"), []byte("text"), 0o600),
		os.Symlink("file", at("link")), os.Symlink("/dev/zero", at("zero")), os.Symlink("pipe", at("link to a pipe")),
	} {
		testkit.Must(t, err)
	}
	socket := testkit.Value(net.Listen("unix", at("socket")))(t)
	defer socket.Close()
	for _, name := range []string{"pipe", "folder", "zero", "socket", "link to a pipe"} {
		if _, err := Read(at(name), 10); !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := ReadAt(at(name), make([]byte, 4), 0); !errors.Is(err, ErrIrregular) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"file", "link"} {
		if b, err := Read(at(name), 4); string(b) != "text" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := ReadOwn(at("file"), 4); string(b) != "text" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := OpenOwn(at("link")); !errors.Is(err, syscall.ELOOP) {
		t.Error(err)
	}
	if _, err := Read(at("none"), 4); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := ReadAt(at("none"), nil, 0); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), at("none")) {
		t.Error(err)
	}
	for off, want := range map[int64]string{0: "text", 1: "ext", 4: "", 9: ""} { // as far as the file goes
		b := make([]byte, 6)
		if n, size, err := ReadAt(at("link"), b, off); string(b[:n]) != want || size != 4 || err != nil {
			t.Errorf("from %d: %q of a file of %d bytes, %v", off, b[:n], size, err)
		}
	}
	if _, err := Read(at("file"), 3); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestGunzip(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range unfolded>>20 + 1 {
		z.Write(zeros)
	}
	z.Close()
	in := testkit.Value(Gunzip(&bomb, int64(bomb.Len())))(t)
	if n, err := io.Copy(io.Discard, in); !errors.Is(err, ErrTooLarge) || n > unfolded {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := Gunzip(strings.NewReader("no gzip"), 7); err == nil {
		t.Error("what is no gzip file is none")
	}
}

func TestLine(t *testing.T) {
	long := strings.Repeat("x", 100) + "\n"
	in := bufio.NewReaderSize(strings.NewReader("a\n"+long+"\nend"), 16)
	for _, want := range []string{"a\n", long, "\n"} {
		if line, err := Line(in); string(line) != want || err != nil {
			t.Errorf("%q, %v", line, err)
		}
	}
	if line, err := Line(in); string(line) != "end" || err != io.EOF {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := Line(bufio.NewReader(strings.NewReader(strings.Repeat("x", MaxLine+1)))); !errors.Is(
		err, ErrTooLarge) {
		t.Error(err)
	}
}
