// SPDX-License-Identifier: Apache-2.0

package measurement

import "testing"

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"node1", "node1", true}, {"node1", "node2", false}, {"node1", "node1.cluster.org", true},
		{"node1.a", "node1.b", false},
		{"node1.a", "node1.a", true}, {"", "", true}, {"", ".a", false}, {"node1", "", false},
	} {
		if SameHost(c.a, c.b) != c.want || SameHost(c.b, c.a) != c.want {
			t.Errorf("%q and %q", c.a, c.b)
		}
	}
}
