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
		_, err := Read(at(name), 10)
		testkit.Check(t, errors.Is(err, ErrIrregular) && strings.Contains(err.Error(), name), "%s: %v", name, err)
		_, _, err = ReadAt(at(name), make([]byte, 4), 0)
		testkit.Check(t, errors.Is(err, ErrIrregular) && strings.Contains(err.Error(), name), "%s: %v", name, err)
	}
	for _, name := range []string{"file", "link"} {
		b, err := Read(at(name), 4)
		testkit.Check(t, string(b) == "text" && err == nil, "%s: %q, %v", name, b, err)
	}
	b, err := ReadOwn(at("file"), 4)
	testkit.Check(t, string(b) == "text" && err == nil, "%q, %v", b, err)
	_, err = OpenOwn(at("link"))
	testkit.Check(t, errors.Is(err, syscall.ELOOP), "%v", err)
	_, err = Read(at("none"), 4)
	testkit.Check(t, errors.Is(err, os.ErrNotExist), "%v", err)
	_, _, err = ReadAt(at("none"), nil, 0)
	testkit.Check(t, errors.Is(err, os.ErrNotExist) && strings.Contains(err.Error(), at("none")), "%v", err)
	for off, want := range map[int64]string{0: "text", 1: "ext", 4: "", 9: ""} { // as far as the file goes
		b := make([]byte, 6)
		if n, size, err := ReadAt(at("link"), b, off); string(b[:n]) != want || size != 4 || err != nil {
			t.Errorf("from %d: %q of a file of %d bytes, %v", off, b[:n], size, err)
		}
	}
	_, err = Read(at("file"), 3)
	testkit.Check(t, errors.Is(err, ErrTooLarge), "%v", err)
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
	n, err := io.Copy(io.Discard, in)
	testkit.Check(t, errors.Is(err, ErrTooLarge) && n <= unfolded, "%d bytes, %v", n, err)
	_, err = Gunzip(strings.NewReader("no gzip"), 7)
	testkit.Check(t, err != nil, "what is no gzip file is none")
}

func TestLine(t *testing.T) {
	long := strings.Repeat("x", 100) + "\n"
	in := bufio.NewReaderSize(strings.NewReader("a\n"+long+"\nend"), 16)
	for _, want := range []string{"a\n", long, "\n"} {
		line, err := Line(in)
		testkit.Check(t, string(line) == want && err == nil, "%q, %v", line, err)
	}
	line, err := Line(in)
	testkit.Check(t, string(line) == "end" && err == io.EOF, "%q, %v", line, err)
	_, err = Line(bufio.NewReader(strings.NewReader(strings.Repeat("x", MaxLine+1))))
	testkit.Check(t, errors.Is(err, ErrTooLarge), "%v", err)
}
