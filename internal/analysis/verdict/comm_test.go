// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// In a job with several communicators, the one of the call is named.
func TestCommunicatorOfTheCall(t *testing.T) {
	for name, want := range map[string]string{"tp3": "It called ncclAllReduce on tp3 10 ms after the others",
		"": "It called ncclAllReduce 10 ms after the others"} {
		ev := evidence(4, 20, 2)
		ev.Comm = func(otf2.CommRef) string { return name }
		v := Judge(ev)
		testkit.Check(t, strings.Contains(v.Text, want), "%q is not in %q", want, v.Text)
	}
}
