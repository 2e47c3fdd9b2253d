// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Short runs of clocks that run apart by more than most do: reports that agree count for more than what is believed of
// clocks.
func TestGPUTimeOfShortRuns(t *testing.T) {
	for _, run := range []struct {
		name  string
		n     int
		burst int
		late  float64
	}{
		{"one by one", 180, 1, 3e3},
		{"bursts", 180, 10, 3e3},
		{"few", 40, 1, 3e3},
		{"very few", 25, 1, 3e3},
		{"few in bursts", 80, 4, 8e3},
		{"late", 180, 1, 15e3},
		{"late bursts", 180, 10, 15e3},
	} {
		for i, length := range []float64{0.1e9, 0.2e9, 0.5e9, 1e9} {
			for _, ppm := range [][]float64{{50, -150, 300}, {-50, 150, -300}}[i%2] {
				name := fmt.Sprintf("%s, %g s, %+g ppm", run.name, length/1e9, ppm)
				var a accuracy
				for seed := range uint64(5) {
					f := newFakeGPU(seed)
					f.n, f.burst, f.pause, f.late, f.drift = run.n, run.burst, length/float64(run.n/run.burst),
						run.late, ppm*1e-6
					kernels := f.kernels()
					_, shown := f.play(t, kernels, otf2.ParadigmCUDA)
					testkit.Must(t, a.add(kernels, shown))
				}
				t.Log(name + ": " + a.String())
				bad := a.bad()
				testkit.Check(t, bad == "" && a.gpu >= a.operations, "%s: %s: %v", name, bad, a.String())
			}
		}
	}
}
