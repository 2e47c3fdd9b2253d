// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"bytes"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Whatever a process has left is refused, or makes a profile that tools can read.
func FuzzAggregates(f *testing.F) {
	var text bytes.Buffer
	testkit.Must(f, sums(f, 1, 0, 20, nil).Write(&text))
	f.Add(text.Bytes())
	f.Add([]byte(
		`{"version":1,"nodes":[{"parent":-1,"kind":"host"},{"parent":0,"kind":"phase","name":"\u0001"}],"rows":[{"location":0,"kind":"thread","cells":[{"node":1,"visits":1,"time":9}]}]}`))
	f.Add([]byte(
		`{"version":1,"nodes":[{"parent":-1,"kind":"x"}],"rows":[{"location":7,"cells":[],"stats":[{"time":{"classes":[[3,1]]}}],"strata":[{"node":9}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := profile.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		d, _ := synthetic(t, 1)
		location := func(n uint64) (otf2.LocationRef, bool) { return otf2.LocationRef(n << 32), n < 2 }
		e := &estimator{rows: make(map[otf2.LocationRef]*sampledRow)}
		e.addRows(a, location, func(t uint64) uint64 { return t })
		e.estimate(d)
		builder := newBuilder(d)
		builder.add(a, location)
		p := builder.build()
		p.Summary()
		testkit.Must(t, p.definitions().Check())
	})
}
