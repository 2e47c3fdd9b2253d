// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestPercentilesAreNearestRank(t *testing.T) {
	d := Durations{Keep: KeptTimes}
	for i := range 200 {
		d.Add(float64(200 - i))
	}
	want := Times{Total: 20100, Avg: 100.5, Min: 1, P50: 100, P99: 198, Max: 200}
	got, approximate := TimesOf(&d)
	testkit.Check(t, got == want && !approximate, "%+v", got)
	got, _ = TimesOf(new(Durations))
	testkit.Check(t, got == (Times{}), "%+v", got)
}
