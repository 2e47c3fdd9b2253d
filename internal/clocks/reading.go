// SPDX-License-Identifier: Apache-2.0

package clocks

// Reading is what a host's own time service (chrony) says: at Time of the host's clock it was Reference by a clock that
// all such hosts share, UTC, give or take Bound ns.
type Reading struct {
	Host      int
	Time      uint64 // archive time of the host, as operations have it
	Reference uint64
	Bound     uint64
}

// addReadings adds what time services say, as messages from and to a host that is all of theirs, of the given number:
// what it sent at Reference − Bound had arrived at Time, and what was sent then had arrived there at Reference + Bound.
// It tells whether there is anything to compare: readings of one host alone say nothing of others.
func (xs *exchanges) addReadings(readings []Reading, service int32, origin uint64) bool {
	hosts := make(map[int]bool)
	for _, r := range readings {
		hosts[r.Host] = true
	}
	if len(hosts) < 2 {
		return false
	}
	for _, r := range readings {
		host := instant{int32(r.Host), float64(int64(r.Time - origin))}
		at := func(t uint64) instant { return instant{service, float64(int64(t - origin))} }
		xs.add(exchange{begins: []instant{at(r.Reference - r.Bound)}, ends: []instant{host}})
		xs.add(exchange{begins: []instant{host}, ends: []instant{at(r.Reference + r.Bound)}})
	}
	return true
}
