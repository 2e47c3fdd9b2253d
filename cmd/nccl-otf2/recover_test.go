// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// TestRecoverCommand repairs a cut archive, says so, and changes nothing when asked not to, or again.
func TestRecoverCommand(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.CopyFS(dir, os.DirFS("../../otf2/testdata/collectives")))
	events := filepath.Join(dir, "nccl", "1.evt")
	testkit.Must(t, errors.Join(os.Truncate(events, 200), os.Remove(filepath.Join(dir, "nccl.otf2"))))
	dry, err := outputOf(recoverCommand(), "-n", filepath.Join(dir, "nccl.otf2"))
	testkit.Check(t, err == nil && strings.Contains(dry, "1.evt: repaired: ") &&
		strings.HasSuffix(dry, "nothing was changed (--dry-run)\n"), "dry run: %v\n%s", err, dry)
	st, err := os.Stat(events)
	testkit.Check(t, err == nil && st.Size() == 200, "after a dry run: %v, %v", st, err)
	out := testkit.Value(outputOf(recoverCommand(), dir))(t)
	testkit.Contains(t, out, events+": repaired: file ends without an end mark at byte ",
		"number of events corrected", "nccl.otf2: created: it was missing", "lost: anchor: ")
	_, err = os.Stat(events + ".orig")
	testkit.Check(t, err == nil, "%v", err)
	var res struct {
		otf2.RecoverResult
		DryRun bool
	}
	out = testkit.Value(outputOf(recoverCommand(), "--format", "json", dir))(t)
	err = json.Unmarshal([]byte(out), &res)
	testkit.Check(t, err == nil && !res.Changed() && len(res.Files) >= 10 && len(res.Lost) == 0, "second time: %v\n%s",
		err, out)
	out, err = outputOf(printCommand(), dir)
	testkit.Check(t, err == nil && (strings.Contains(out, "MPI_COLLECTIVE") || strings.Contains(out, "NON_BLOCKING")),
		"%v\n%s", err, out)
}

// TestRecoverCommandFails where files cannot be helped, and where there is nothing to recover.
func TestRecoverCommandFails(t *testing.T) {
	dir := t.TempDir()
	_, err := outputOf(recoverCommand(), dir)
	testkit.Check(t, err != nil, "an empty folder: no error")
	testkit.Must(t, os.CopyFS(dir, os.DirFS("../../otf2/testdata/collectives")))
	testkit.Write(t, filepath.Join(dir, "nccl.def"), []byte("these are no definitions"))
	out, err := outputOf(recoverCommand(), dir)
	var code exitCode
	testkit.Check(t, errors.As(err, &code) && code == exitInput && strings.Contains(out, "nccl.def: failed: ") &&
		strings.Contains(out, "lost: all global definitions"), "%v\n%s", err, out)
}
