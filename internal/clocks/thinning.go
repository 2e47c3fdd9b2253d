// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// maxInstants bounds the exchanges kept of a run: about 100 MiB including what the fit needs.
const maxInstants = 1 << 20

// exchanges keeps the exchanges found, up to a limit. Above it, each direction between hosts keeps equally many, spread
// over the run: in each of equal stretches of time the tightest. So neither the order in which communicators are read
// nor the number of other exchanges decides what is kept.
type exchanges struct {
	directions map[string]*direction
	order      []*direction // in the order in which they were found
	key        []byte       // of the exchange being added
	size       int          // instants kept
	limit      int          // of size
	total      int          // exchanges found
}

// direction is a set of exchanges that bound the same clocks from the same side: messages from one host to another, or
// collectives among the same hosts in which the same host came last.
type direction struct {
	kept []exchange
}

func newExchanges(limit int) *exchanges {
	return &exchanges{directions: make(map[string]*direction), limit: limit}
}

func (xs *exchanges) add(x exchange) {
	if !x.crosses() {
		return
	}
	xs.key = x.appendDirection(xs.key[:0])
	d := xs.directions[string(xs.key)]
	if d == nil {
		d = new(direction)
		xs.directions[string(xs.key)] = d
		xs.order = append(xs.order, d)
	}
	d.kept = append(d.kept, x)
	xs.total++
	if xs.size += x.size(); xs.size > xs.limit {
		xs.thin()
	}
}

// maxLasts bounds the directions of collectives among the same hosts: with more hosts, neighbors share a direction.
const maxLasts = 64

// appendDirection appends what distinguishes the exchange's direction from others.
func (x *exchange) appendDirection(key []byte) []byte {
	for _, b := range x.begins {
		key = binary.AppendUvarint(key, uint64(b.host)+1)
	}
	key = append(key, 0)
	for _, e := range x.ends {
		key = binary.AppendUvarint(key, uint64(e.host)+1)
	}
	key = append(key, 0)
	if last, _, ok := x.lastBegin(); ok {
		key = binary.AppendUvarint(key, uint64(last*min(len(x.begins), maxLasts)/len(x.begins)))
	}
	return key
}

// lastBegin returns which begin was the last one; it needs no clocks, because the last host spent the least time. ok is
// false unless all hosts have a begin and an end.
func (x *exchange) lastBegin() (begin int, took float64, ok bool) {
	if len(x.begins) < 2 || len(x.begins) != len(x.ends) {
		return 0, 0, false
	}
	for i, b := range x.begins {
		e := x.ends[i] // both are in the order of hosts
		if e.host != b.host {
			return 0, 0, false
		}
		if own := e.time - b.time; i == 0 || own < took {
			begin, took = i, own
		}
	}
	return begin, took, true
}

// tightness compares exchanges of one direction: the smaller, the tighter the bound. It is a duration on one clock
// where all hosts have a begin and an end; otherwise it includes the difference of the clocks.
func (x *exchange) tightness() float64 {
	if _, took, ok := x.lastBegin(); ok {
		return took
	}
	sum, n := 0.0, 0
	for _, b := range x.begins {
		for _, e := range x.ends {
			if b.host != e.host {
				sum, n = sum+e.time-b.time, n+1
			}
		}
	}
	return sum / float64(n)
}

// thin halves what is kept. Each direction keeps at least one exchange, so with very many directions thin may remove
// nothing.
func (xs *exchanges) thin() {
	quota := xs.quota(xs.limit / 2)
	xs.size = 0
	for _, d := range xs.order {
		d.thin(quota)
		for i := range d.kept {
			xs.size += d.kept[i].size()
		}
	}
	if xs.size > xs.limit/4*3 {
		xs.limit *= 2
	}
}

// quota returns how many exchanges each direction may keep so that all directions together stay within limit instants.
// Directions with fewer exchanges leave their share to the others.
func (xs *exchanges) quota(limit int) int {
	all := slices.Clone(xs.order)
	slices.SortFunc(all, func(a, b *direction) int { return cmp.Compare(len(a.kept), len(b.kept)) })
	each := 0 // instants that one more exchange per direction adds
	for _, d := range all {
		each += d.kept[0].size()
	}
	for _, d := range all {
		size := d.kept[0].size()
		if len(d.kept)*each > limit {
			return max(limit/each, 1)
		}
		limit -= len(d.kept) * size
		each -= size
	}
	return len(all[len(all)-1].kept)
}

// binExchanges is how many exchanges of a direction a stretch of time keeps: more than one, so that a wrong exchange
// does not hide the right ones.
const binExchanges = 4

// thin keeps at most quota exchanges.
func (d *direction) thin(quota int) {
	if len(d.kept) <= quota {
		return
	}
	points := make([]delayPoint, len(d.kept))
	for i := range d.kept {
		points[i] = delayPoint{time: d.kept[i].begins[0].time, delay: d.kept[i].tightness(), index: i}
	}
	slices.SortStableFunc(points, func(p, q delayPoint) int { return cmp.Compare(p.time, q.time) })
	from, to := points[0].time, points[len(points)-1].time
	bins := max(quota/binExchanges, 1)
	each := min(quota, binExchanges)
	kept := make([]exchange, 0, quota)
	for bin := 0; len(points) > 0; bin++ {
		n := len(points)
		if end := from + (to-from)*float64(bin+1)/float64(bins); bin < bins-1 {
			n, _ = slices.BinarySearchFunc(points, end,
				func(p delayPoint, t float64) int { return cmp.Compare(p.time, t) })
		}
		for _, p := range tightest(points[:n], each) {
			kept = append(kept, d.kept[p.index])
		}
		points = points[n:]
	}
	d.kept = kept
}

// delayPoint is an exchange as a point of its direction.
type delayPoint struct {
	time, delay float64 // ns
	index       int
}

// tightest chooses n of points, which are in the order of time: first those that bound clocks tightest for some
// possible drift (the corners of the lower hull), then the corners of what remains.
func tightest(points []delayPoint, n int) []delayPoint {
	if len(points) <= n {
		return points
	}
	var chosen []delayPoint
	rest := slices.Clone(points)
	for len(chosen) < n && len(rest) > 0 {
		corners := lowerHull(rest)
		if room := n - len(chosen); len(corners) > room {
			for i := range room { // evenly, with both ends
				chosen = append(chosen, corners[(2*i+1)*len(corners)/(2*room)])
			}
			break
		}
		chosen = append(chosen, corners...)
		next := 0
		rest = slices.DeleteFunc(rest, func(p delayPoint) bool {
			if next < len(corners) && p.index == corners[next].index {
				next++
				return true
			}
			return false
		})
	}
	slices.SortStableFunc(chosen, func(p, q delayPoint) int { return cmp.Compare(p.time, q.time) })
	return chosen
}

// lowerHull returns the corners of the convex hull below points (in the order of time) that lines of slopes up to
// maxDrift touch.
func lowerHull(points []delayPoint) []delayPoint {
	var hull []delayPoint
	for _, p := range points {
		if n := len(hull); n > 0 && hull[n-1].time == p.time {
			if hull[n-1].delay <= p.delay {
				continue
			}
			hull = hull[:n-1]
		}
		for n := len(hull); n >= 2 && slope(hull[n-2], hull[n-1]) >= slope(hull[n-1], p); n-- {
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	for len(hull) > 1 && slope(hull[0], hull[1]) < -maxDrift {
		hull = hull[1:]
	}
	for n := len(hull); n > 1 && slope(hull[n-2], hull[n-1]) > maxDrift; n-- {
		hull = hull[:n-1]
	}
	return hull
}

func slope(p, q delayPoint) float64 { return (q.delay - p.delay) / (q.time - p.time) }

// list returns all exchanges kept, in an order that depends on the archive alone.
func (xs *exchanges) list() []exchange {
	var all []exchange
	for _, d := range xs.order {
		all = append(all, d.kept...)
	}
	return all
}
