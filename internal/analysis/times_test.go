// SPDX-License-Identifier: Apache-2.0

package analysis

import "testing"

func TestPercentilesAreNearestRank(t *testing.T) {
	d := Durations{Keep: KeptTimes}
	for i := range 200 {
		d.Add(float64(200 - i))
	}
	want := Times{Total: 20100, Avg: 100.5, Min: 1, P50: 100, P99: 198, Max: 200}
	if got, approximate := TimesOf(&d); got != want || approximate {
		t.Errorf("%+v", got)
	}
	if got, _ := TimesOf(new(Durations)); got != (Times{}) {
		t.Errorf("%+v", got)
	}
}
