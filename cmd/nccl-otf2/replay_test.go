// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A recording of several hosts is played on one: its times are then those of several clocks.
func TestReplaySaysThatHostsAreNotKept(t *testing.T) {
	process := func(boot string) *replay.Process { return &replay.Process{Opens: []replay.Open{{Boot: boot}}} }
	for _, c := range []struct {
		boots []string
		clock string
		says  bool
	}{
		{[]string{"a", "b", "a"}, "recorded", true},
		{[]string{"a", "b"}, "live", false},
		{[]string{"a", "a"}, "recorded", false},
		{[]string{"", ""}, "recorded", false}, // old recordings do not state it
	} {
		rec := &replay.Recording{Name: "job"}
		for _, boot := range c.boots {
			rec.Processes = append(rec.Processes, process(boot))
		}
		remark := hostsRemark(rec, c.clock, "exp1/recording")
		testkit.Check(t, strings.Contains(remark, "2 hosts") == c.says &&
			strings.Contains(remark, "`nccl-otf2 report exp1/recording`") == c.says, "%v, %s: %q", c.boots, c.clock, remark)
	}
}
