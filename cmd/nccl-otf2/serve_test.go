// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// reader ends the tool as soon as it has read that it may.
type reader struct{ bytes.Buffer }

func (r *reader) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("Ctrl-C")) {
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			return 0, err
		}
	}
	return r.Buffer.Write(text)
}

// Who reads the address of a served page can end the server from then on, in order: not a moment later.
func TestServedPageCanBeEndedAtOnce(t *testing.T) {
	cmd := timelineCommand()
	out := new(reader)
	cmd.SetOut(out)
	cmd.SetArgs([]string{"../../otf2/testdata/collectives/nccl.otf2", "--serve"})
	testkit.Must(t, cmd.Execute())
	testkit.Check(t, bytes.Contains(out.Bytes(), []byte("http://127.0.0.1:")), "no address: %s", out.Bytes())
}

// What goes wrong while the archive is read ends the tool, which has told its address by then.
func TestServedPageThatCannotBeReadEnds(t *testing.T) {
	anchors, err := filepath.Glob("../../otf2/testdata/*/*.otf2")
	testkit.Require(t, err == nil && len(anchors) != 0, "no archives %v", err)
	cmd := timelineCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{anchors[0], "--serve", "--phase", "no such phase"})
	err = cmd.Execute()
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "no such phase"), "it ends with %v", err)
	testkit.Check(t, bytes.Contains(out.Bytes(), []byte("http://127.0.0.1:")), "no address: %s", out.Bytes())
}
