// SPDX-License-Identifier: Apache-2.0

package clocks

// Reading is one statement of a host's time service (chrony): when the host's clock showed Time, the clock that all
// such hosts share (UTC) showed Reference, ± Bound ns.
type Reading struct {
	Host      int
	Time      uint64 // archive time of the host, as in operations
	Reference uint64
	Bound     uint64
}

// addReadings adds readings as messages to and from a common host, the service: a message sent at Reference − Bound had
// arrived at Time, and a message sent at Time had arrived at Reference + Bound. It reports whether the readings compare
// anything: readings of a single host do not.
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
