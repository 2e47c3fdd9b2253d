// SPDX-License-Identifier: Apache-2.0

package powercut

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// syscalls that change what is on the disk, or bring it there.
const syscalls = "open,openat,creat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,syncfs,sync_file_range,rename,renameat,renameat2," +
	"mkdir,mkdirat,unlink,unlinkat,rmdir,truncate,ftruncate,fallocate,link,linkat,symlink,symlinkat,copy_file_range,sendfile,splice"

// Command is a command under strace, which writes the calls of it and of all that it starts into a file. Each sync
// takes so much longer than it would.
func Command(strace, file string, slower time.Duration, args ...string) *exec.Cmd {
	options := []string{"-f", "--seccomp-bpf", "-y", "-xx", "-s", strconv.Itoa(1 << 25), "-o", file, "-e",
		"trace=" + syscalls}
	if slower > 0 {
		options = append(options, "-e", fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", slower.Microseconds()))
	}
	return exec.Command(strace, slices.Concat(options, []string{"--"}, args)...)
}

// call is a system call that succeeded.
type call struct {
	name       string
	args       []string
	result     int64
	path       string // of the descriptor that it returned
	begin, end int    // lines of the record
}

var (
	whole   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?`)
	begun   = regexp.MustCompile(`^(\d+) +(\w+)\((.*?),? *<unfinished \.\.\.>$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
)

// readTrace reads what strace wrote.
func readTrace(file string) (calls []call, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	type half struct {
		text string
		line int
	}
	open := make(map[string]half) // by thread
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<28)
	for line := 0; in.Scan(); line++ {
		text, begin := in.Text(), line
		if m := begun.FindStringSubmatch(text); m != nil {
			open[m[1]] = half{m[1] + " " + m[2] + "(" + m[3], line}
			continue
		}
		if m := resumed.FindStringSubmatch(text); m != nil {
			h := open[m[1]]
			rest := m[3]
			if rest != "" && rest[0] != ')' && rest[0] != ',' && !strings.HasSuffix(h.text, "(") {
				rest = ", " + strings.TrimLeft(rest, " ")
			}
			text, begin = h.text+rest, h.line
		}
		m := whole.FindStringSubmatch(text)
		if m == nil {
			continue // an exit, a signal
		}
		result, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil || result < 0 {
			continue
		}
		c := call{name: m[2], result: result, path: plain(m[5]), begin: begin, end: line}
		for _, a := range strings.Split(m[3], ", ") {
			c.args = append(c.args, strings.TrimSpace(a))
		}
		calls = append(calls, c)
	}
	return calls, in.Err()
}

// plain undoes strace's -xx.
func plain(s string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		return s
	}
	return string(b)
}

// text is a string argument.
func (c *call) text(i int) string { return plain(strings.Trim(c.args[i], `"`)) }

// descriptor is the path of a descriptor argument.
func (c *call) descriptor(i int) string {
	_, path, ok := strings.Cut(c.args[i], "<")
	if !ok {
		return ""
	}
	return plain(strings.TrimSuffix(path, ">"))
}

// at is the path of a name beside a folder's descriptor.
func (c *call) at(folder, name int) string {
	if path := c.text(name); filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.descriptor(folder), c.text(name))
}

func (c *call) number(i int) int64 {
	n, err := strconv.ParseInt(c.args[i], 0, 64)
	if err != nil {
		panic(fmt.Sprintf("%s: argument %d is %q", c.name, i, c.args[i]))
	}
	return n
}
