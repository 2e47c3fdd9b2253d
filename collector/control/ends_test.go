// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm/shmtest"
)

// A job that ends while it is asked has not been told anything.
func TestOrdersToAJobThatEnds(t *testing.T) {
	dir := t.TempDir()
	s, err := experiment.Create(dir, "a")
	if err == nil {
		err = s.Write(&experiment.Process{Version: experiment.Version, UUID: "a", PID: 10})
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		announced := shmtest.Await(func() bool { _, err := os.Stat(filepath.Join(dir, FileName)); return err == nil })
		if err := errors.Join(s.Finish(), s.Close()); err != nil || !announced {
			t.Error(err)
		}
	}()
	if _, _, err := (&Controller{Dir: dir}).Events(context.Background(), 1); err == nil || !strings.Contains(err.Error(), "the job has ended") {
		t.Errorf("%v", err)
	}
}
