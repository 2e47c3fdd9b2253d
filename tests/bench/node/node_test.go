// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// TestMain lets the test's program be the node's collector, and what stands beside a process.
func TestMain(m *testing.M) {
	if beside() {
		return
	}
	os.Exit(m.Run())
}

// Both ways record each callback of all processes, and what they took is known.
func TestBothWaysRecordAll(t *testing.T) {
	host, err := caller.Build("../../..", "../../../build", t.TempDir())
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	b := &bench{host: host, dir: t.TempDir(), processes: 2, operations: 25, seconds: 2}
	for name, way := range map[string]func(context.Context) (*cost, error){"each": b.each, "node": b.node} {
		c, err := way(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Lost != 0 || c.Threads == 0 || c.Memory == 0 || c.Init == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
