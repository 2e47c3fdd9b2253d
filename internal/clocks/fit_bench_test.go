// SPDX-License-Identifier: Apache-2.0

package clocks_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/clocks"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// BenchmarkFit fits the clocks of 16 hosts, from runs of a growing number of AllReduces: the time grows with the
// events, the memory does not.
func BenchmarkFit(b *testing.B) {
	const hosts = 16
	for _, operations := range []uint64{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("events=", operations*hosts*4), func(b *testing.B) {
			anchor := jobtest.Make(b, hosts, 1, func(r int, p *shardtest.Process) {
				c := p.World()
				for i := range operations {
					p.AllReduce(c, t0+i*100*us+uint64(r)*us, t0+i*100*us+uint64(20+r%3)*us, 1000)
				}
			})
			processes := make(clocks.Hosts, hosts)
			for p := range processes {
				processes[p] = p
			}
			b.ReportAllocs()
			for b.Loop() {
				fit, err := clocks.Fit(anchor, processes, &clocks.Options{Workers: 2})
				testkit.Require(b, err == nil && fit.Exchanges == int(operations), "%v %v", err, fit)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapSys)/(1<<20), "MiB-heap")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(operations*hosts*4), "ns/event")
		})
	}
}
