// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"runtime"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/scorep"
	"ncclotf2/scorep/shardtest"
	"ncclotf2/shard"
)

// BenchmarkFitClocks fits the clocks of 16 hosts, from runs of a growing number of AllReduces: the time grows with the events, the memory
// does not.
func BenchmarkFitClocks(b *testing.B) {
	const hosts = 16
	for _, operations := range []uint64{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("events=", operations*hosts*4), func(b *testing.B) {
			dir := b.TempDir()
			for r := range hosts {
				p := shardtest.New(b, dir, fmt.Sprintf("p%02d", r)).On(fmt.Sprint("node", r), 100+r).Launched("slurm", r, hosts)
				c := p.Comm(shard.Comm{ID: 1, Name: "world", NRanks: hosts, Rank: r, InitTime: t0})
				for i := range operations {
					p.AllReduce(c, t0+i*100*us+uint64(r)*us, t0+i*100*us+uint64(20+r%3)*us, 1000)
				}
				p.Finish()
			}
			res, err := scorep.Unify(dir, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				fit, err := FitClocks(res.Runs[0].Archive, hosts, func(l otf2.LocationRef) int { return int(uint32(l)) }, &ClockOptions{Workers: 2})
				if err != nil || fit.Exchanges != int(operations) {
					b.Fatal(err, fit)
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapSys)/(1<<20), "MiB-heap")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(operations*hosts*4), "ns/event")
		})
	}
}
