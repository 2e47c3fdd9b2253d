// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// A profile says why something is missing in the words of unify: what a dead collector had in memory is not for want of
// any.
func TestProfileSaysWhyOperationsAreMissing(t *testing.T) {
	for _, tc := range []struct {
		properties map[string]string
		want       []string
	}{
		{map[string]string{"NCCL_OTF2::LOST": "3", "NCCL_OTF2::LOST::COLLECTOR_DIED::ALL_REDUCE": "3"},
			[]string{"3 operations are missing: a collector that died had them in memory"}},
		{map[string]string{"NCCL_OTF2::LOST": "3", "NCCL_OTF2::LOST::MEMORY::COLL": "2",
			"NCCL_OTF2::LOST::COLLECTOR_DIED::ALL_REDUCE": "1"},
			[]string{"2 events were not recorded, for want of memory (NCCL_OTF2_MEMORY) or disk",
				"1 operation is missing: a collector that died"}},
		{map[string]string{"NCCL_OTF2::LOST": "0"}, nil},
	} {
		p := new(cubex.Profile)
		for name, value := range tc.properties {
			p.Keep(otf2.Property{Name: name, Value: value})
		}
		lines := profileLosses(p).formatLines(false)
		testkit.Require(t, len(lines) == len(tc.want), "%q, want %q", lines, tc.want)
		for i, want := range tc.want {
			testkit.Check(t, strings.HasPrefix(lines[i], want), "%q, want %q", lines[i], want)
		}
	}
}
