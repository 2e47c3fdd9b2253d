// SPDX-License-Identifier: Apache-2.0

package gpuclock

import "slices"

// Evidence against a plan's stamps: its own bounds, and earlier stamps on the same channels.

const (
	// slackNs is how far a mapped time may lie outside its bounds, beyond its uncertainty.
	slackNs = 5_000
	// ringPlaces is the number of kernels per channel whose stamps NCCL keeps (docs/nccl-profiler-api.md §7.3).
	ringPlaces = 64
	// A ProxyOp ends some time after its last transfer.
	networkSlackNs = 100_000
)

// doubt is a reason not to believe stamps.
type doubt uint8

const (
	doubtEarly  doubt = 1 << iota // begins before its launch
	doubtLate                     // ends after its report, or begins after its network traffic
	doubtTook                     // took longer than from its launch to its report, or ended before it began
	doubtOrder                    // not in the order of kernels
	doubtRound                    // a stamp that appeared one round of its ring before
	doubtBroken                   // no stamp, or one that appeared before for another reason
)

// channelStamps are the last stamps of a channel.
type channelStamps struct {
	end   uint64 // the latest
	jumps int    // jumps of the clock so far
	ends  [ringPlaces]uint64
	next  int // next index in ends
}

// addEnd takes the stamp of a kernel's end. Operations of one batch have the same stamps.
func (l *channelStamps) addEnd(end uint64, jumps int) {
	if l.end < end || l.jumps != jumps {
		l.end, l.jumps = end, jumps
	}
	if l.ends[(l.next+ringPlaces-1)%ringPlaces] != end {
		l.ends[l.next] = end
		l.next = (l.next + 1) % ringPlaces
	}
}

// evidence sums up the doubts about a plan's stamps.
type evidence struct {
	first  uint64 // stamp
	doubts doubt
	off    float64 // by how much (ns) times violate their bounds
}

func (f *Filter) examinePlan(p *Plan, b Bounds, inOrder bool) evidence {
	k, s := f.Clock, p.planEnds()
	e := evidence{first: s.first}
	if p.Unstamped > 0 {
		e.doubts |= doubtBroken
	}
	for _, span := range p.Kernels {
		switch {
		case span.Begin == 0:
			e.doubts |= doubtBroken
		case span.End < span.Begin:
			e.doubts |= doubtTook
		}
		before := f.channels[span.Channel]
		if before == nil || !inOrder || before.jumps != k.jumps || span.Begin >= before.end && span.End > before.end {
			continue
		}
		switch slices.Index(before.ends[:], span.End) {
		case -1:
			e.doubts |= doubtOrder
		case before.next:
			e.doubts |= doubtRound
		default:
			e.doubts |= doubtBroken
		}
	}
	if e.doubts&(doubtBroken|doubtTook) != 0 {
		return e
	}
	grain := k.grainNs()
	took := float64(k.gpuNanoseconds(s.last) - k.gpuNanoseconds(s.first))
	if most := float64(s.ended - min(s.ended, b.Launched)); took*(1-maxSlope) > most+grain {
		e.doubts |= doubtTook
		e.off = took - most
	}
	begin, beginOff, _ := k.HostTime(s.first, s.began)
	end, endOff, ok := k.HostTime(s.last, s.ended)
	if !ok {
		return e
	}
	beyond := func(d doubt, a, b, off uint64) { // a must not be after b
		if a > b+off {
			e.doubts |= d
			e.off = max(e.off, float64(a-b-off))
		}
	}
	beyond(doubtLate, end, s.ended, uint64(endOff.most)+slackNs)
	if b.NetStop != 0 {
		beyond(doubtLate, begin, b.NetStop, uint64(beginOff.most)+networkSlackNs)
	}
	beyond(doubtEarly, b.Launched, begin, uint64(beginOff.most)+slackNs)
	return e
}
