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
	if err != nil || !strings.Contains(dry, "1.evt: repaired: ") ||
		!strings.HasSuffix(dry, "nothing was changed (--dry-run)\n") {
		t.Errorf("dry run: %v\n%s", err, dry)
	}
	if st, err := os.Stat(events); err != nil || st.Size() != 200 {
		t.Errorf("after a dry run: %v, %v", st, err)
	}
	out := testkit.Value(outputOf(recoverCommand(), dir))(t)
	testkit.Contains(t, out, events+": repaired: file ends without an end mark at byte ",
		"number of events corrected", "nccl.otf2: created: it was missing", "lost: anchor: ")
	if _, err := os.Stat(events + ".orig"); err != nil {
		t.Error(err)
	}
	var res struct {
		otf2.RecoverResult
		DryRun bool
	}
	out = testkit.Value(outputOf(recoverCommand(), "--format", "json", dir))(t)
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.Changed() || len(res.Files) < 10 ||
		len(res.Lost) != 0 {
		t.Errorf("second time: %v\n%s", err, out)
	}
	if out, err := outputOf(printCommand(), dir); err != nil || !strings.Contains(out, "MPI_COLLECTIVE") &&
		!strings.Contains(out, "NON_BLOCKING") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRecoverCommandFails where files cannot be helped, and where there is nothing to recover.
func TestRecoverCommandFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := outputOf(recoverCommand(), dir); err == nil {
		t.Error("an empty folder: no error")
	}
	testkit.Must(t, os.CopyFS(dir, os.DirFS("../../otf2/testdata/collectives")))
	testkit.Write(t, filepath.Join(dir, "nccl.def"), []byte("these are no definitions"))
	out, err := outputOf(recoverCommand(), dir)
	var code exitCode
	if !errors.As(err, &code) || code != exitInput || !strings.Contains(out, "nccl.def: failed: ") ||
		!strings.Contains(out, "lost: all global definitions") {
		t.Errorf("%v\n%s", err, out)
	}
}
