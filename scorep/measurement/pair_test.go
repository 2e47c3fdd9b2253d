// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"node1", "node1", true}, {"node1", "node2", false}, {"node1", "node1.cluster.org", true},
		{"node1.a", "node1.b", false},
		{"node1.a", "node1.a", true}, {"", "", true}, {"", ".a", false}, {"node1", "", false},
	} {
		testkit.Check(t, SameHost(c.a, c.b) == c.want && SameHost(c.b, c.a) == c.want, "%q and %q", c.a, c.b)
	}
}
