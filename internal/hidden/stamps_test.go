// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestGPUTimesAreAskedForWhereThatIsSafe(t *testing.T) {
	for _, c := range []struct {
		api                int
		allgatherv, rearch string
		by                 string // "-": not asked
	}{
		{5, "", "", ""},
		{6, "", "", "-"},
		{6, "1", "", "-"},
		{6, "0", "", "NCCL_ALLGATHERV_ENABLE=0"},
		{6, " 0x0", "", "NCCL_ALLGATHERV_ENABLE= 0x0"},
		{6, "off", "", "NCCL_ALLGATHERV_ENABLE=off"},
		{6, "0 # quick", "", "NCCL_ALLGATHERV_ENABLE=0 # quick"},
		{6, "12 # slow", "", "-"},
		{6, "99999999999999999999", "", "-"},
		{6, "", "1", "-"}, // that way came with 2.31
		{7, "", "", "-"},
		{7, "0", "", "NCCL_ALLGATHERV_ENABLE=0"},
		{7, "", "0", "-"},
		{7, "", "on", "-"},
		{7, "", "1", "NCCL_ENQUEUE_REARCH_ENABLE=1"},
		{8, "", "", "-"},
	} {
		asked, by := Stamps(c.api, func(name string) string {
			return map[string]string{AllGatherV: c.allgatherv, Rearch: c.rearch}[name]
		})
		testkit.Check(t, asked == (c.by != "-") && (!asked || by == c.by),
			"v%d, %q, %q: asked %v by %q, want %q", c.api, c.allgatherv, c.rearch, asked, by, c.by)
	}
}
