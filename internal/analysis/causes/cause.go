// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"slices"
)

// Causes, and sums of times by cause.

// Kind says in what way a rank was late.
type Kind uint8

// Kinds of causes.
const (
	Host     Kind = iota // the application called late
	Call                 // NCCL's call took long
	GPU                  // it was called in time, but the GPU began late
	Own                  // late by itself, but the time of the call is unknown
	Transfer             // operations took longer on it than on other members, from the last arrival to the end
	Link                 // operations took longer because its sends were slow on the network
	Moving               // operations took longer because its GPU moved data slowly
	Turns                // others share its GPU, and their turns explain its lateness
	NumKinds
)

// OwnKinds are the kinds in which a rank is late by itself.
var OwnKinds = [ownKinds]Kind{Host, Call, GPU, Own}

const ownKinds = int(Transfer) // these kinds come first

// cause is a cause of a rank, or one of the causes without a rank, which follow those.
type cause uint32

// causesOf numbers the causes for a number of ranks.
type causesOf int

func (n causesOf) of(rank int32, k Kind) cause { return cause(rank)*cause(NumKinds) + cause(k) }
func (n causesOf) startUp() cause              { return cause(n) * cause(NumKinds) }
func (n causesOf) unknown() cause              { return n.startUp() + 1 }
func (n causesOf) all() int                    { return int(n)*int(NumKinds) + 2 }

// rank returns the rank and kind of a cause; ok is false for causes without a rank.
func (n causesOf) rank(c cause) (rank int, k Kind, ok bool) {
	if c >= n.startUp() {
		return -1, 0, false
	}
	return int(c) / int(NumKinds), Kind(c % cause(NumKinds)), true
}

// amounts has ns by cause. It is immutable; nil has none.
type amounts []amount

type amount struct {
	of cause
	ns float64
}

// mostCauses limits the causes in amounts. Beyond it, the smallest become unknown.
const mostCauses = 32

// scratch adds up amounts: a sum for each cause, and the list of causes with a sum.
type scratch struct {
	ns      []float64
	touched []cause
	in      []bool
}

func newScratch(n int) *scratch { return &scratch{ns: make([]float64, n), in: make([]bool, n)} }

func (s *scratch) add(c cause, ns float64) {
	if !s.in[c] {
		s.in[c] = true
		s.touched = append(s.touched, c)
	}
	s.ns[c] += ns
}

func (s *scratch) addAll(all amounts, factor float64) {
	ns, in := s.ns, s.in[:len(s.ns)]
	for _, a := range all {
		if !in[a.of] {
			in[a.of], s.touched = true, append(s.touched, a.of)
		}
		ns[a.of] += factor * a.ns
	}
}

func (s *scratch) addScratch(o *scratch, factor float64) {
	ns, in, more := s.ns, s.in[:len(s.ns)], o.ns[:len(s.ns)]
	for _, c := range o.touched {
		if !in[c] {
			in[c], s.touched = true, append(s.touched, c)
		}
		ns[c] += factor * more[c]
	}
}

// bound limits the causes of a sum that is still growing: at twice the limit of amounts, the smallest become unknown.
func (s *scratch) bound(unknown cause) {
	if len(s.touched) > 2*mostCauses {
		s.merge(unknown)
	}
}

// merge makes all but the greatest causes unknown.
func (s *scratch) merge(unknown cause) {
	slices.SortFunc(s.touched, func(a, b cause) int { return cmp.Compare(s.ns[b], s.ns[a]) })
	small := s.touched[mostCauses-1:]
	rest := 0.0
	for _, c := range small {
		rest += s.ns[c]
		s.ns[c], s.in[c] = 0, false
	}
	s.touched = s.touched[:mostCauses-1]
	s.add(unknown, rest)
}

// amounts returns the sums. If there are too many causes, the smallest become unknown.
func (s *scratch) amounts(unknown cause) amounts {
	if len(s.touched) > mostCauses {
		s.merge(unknown)
	}
	all := make(amounts, 0, len(s.touched))
	for _, c := range s.touched {
		if s.ns[c] != 0 {
			all = append(all, amount{c, s.ns[c]})
		}
	}
	return all
}

func (s *scratch) clear() {
	for _, c := range s.touched {
		s.ns[c], s.in[c] = 0, false
	}
	s.touched = s.touched[:0]
}

// positive returns the sum of the amounts above zero.
func (s *scratch) positive() (sum float64) {
	for _, c := range s.touched {
		sum += max(s.ns[c], 0)
	}
	return sum
}
