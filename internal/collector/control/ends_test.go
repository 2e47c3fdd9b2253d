// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// jobThatEnds is the directory of a job that ends as soon as it is asked something.
func jobThatEnds(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := experiment.Create(dir, "a")
	if err == nil {
		err = s.Write(&description.Process{Version: description.Version, UUID: "a", PID: 10})
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Path(), experiment.BacklogFile), nil, 0o600)
	}
	testkit.Must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		announced := shmtest.Await(func() bool { _, err := os.Stat(filepath.Join(dir, FileName)); return err == nil })
		err := errors.Join(s.Finish(), s.Close())
		testkit.Check(t, err == nil && announced, "%v", err)
	}()
	t.Cleanup(func() { <-ended })
	return dir
}

// A job that ends while it is asked has not been told anything.
func TestOrdersToAJobThatEnds(t *testing.T) {
	dir := jobThatEnds(t)
	_, _, err := (&Controller{Dir: dir}).Events(context.Background(), 1)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "the job has ended"), "%v", err)
}

// All that a job had put off is in its shards when it has ended.
func TestWatchOfAJobThatEnds(t *testing.T) {
	dir := jobThatEnds(t)
	behind, err := (&Controller{Dir: dir}).Watch(context.Background(), time.Hour)
	testkit.Check(t, behind == 0 && err == nil, "%d bytes are behind, %v", behind, err)
}
