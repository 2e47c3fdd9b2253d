// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
)

// socketVariable names the socket of the node's collector in the environment of the node's processes.
const socketVariable = "BENCH_NODE_SOCKET"

// node is a run with one collector for all processes.
func (b *bench) node(ctx context.Context) (*cost, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(b.dir, "socket")
	server := exec.CommandContext(ctx, self, "serve", socket)
	server.Stderr = os.Stderr
	ready, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return nil, err
	}
	return b.job(ctx, []string{socketVariable + "=" + socket, "NCCL_OTF2_COLLECTOR=" + self},
		&watch{pid: server.Process.Pid})
}

// handOver gives the memory of a process, and its environment, to the node's collector, and returns when that is done
// with it.
func handOver(socket, fd string) error {
	memory, err := strconv.Atoi(fd)
	if err != nil {
		return err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer c.Close()
	text := strings.Join(os.Environ(), "\x00")
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	if _, _, err := c.WriteMsgUnix(head, unix.UnixRights(memory), nil); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_ = unix.Close(memory)
	_, err = io.Copy(io.Discard, c)
	return err
}

// serve is the node's collector. Like one beside a process it uses one processor at once.
func serve(socket string) error {
	_ = os.Remove(socket)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	if _, err := os.Stdout.WriteString("r"); err != nil {
		return err
	}
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := take(c); err != nil {
				fmt.Fprintln(os.Stderr, "node:", err)
			}
		}()
	}
}

// take collects what a process records until it has ended.
func take(c *net.UnixConn) error {
	head, rights := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.ReadMsgUnix(head, rights)
	if err != nil || n != len(head) {
		return errors.Join(err, errors.New("no memory"))
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return errors.Join(err, errors.New("no memory"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	text := make([]byte, binary.LittleEndian.Uint64(head))
	if _, err := io.ReadFull(c, text); err != nil {
		return err
	}
	vars := make(map[string]string)
	for v := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	_, err = collector.Run(context.Background(), collector.Options{
		FD: fds[0], Lookup: func(name string) (string, bool) { v, set := vars[name]; return v, set },
	})
	return err
}
