// SPDX-License-Identifier: Apache-2.0

// Package top hands low what high does.
package top

import (
	"handed/high"
	"handed/low"
)

type job struct {
	finish func() error
	shown  int
}

func (j *job) Finish() error { return high.Finish() }

func (j *job) own() error { j.shown++; return nil }

func indirect() error { return step() }
func step() error     { return high.Finish() }

func maker() func() error { return func() error { return high.Finish() } }

func through(f func() error) error {
	return low.Run(f) // seen: its caller's
}

func Top(j *job) {
	_ = low.Run(high.Finish)                                // seen
	_ = low.Run(indirect)                                   // seen
	_ = low.Run(high.Thing{}.Finish)                        // seen: a method
	_ = low.Run(func() error { return indirect() })         // seen
	_ = low.RunWith(low.Options{Finish: indirect})          // seen
	_ = low.RunAll(j.own, indirect)                         // seen
	_ = low.RunOn(j)                                        // seen
	_ = low.Run(maker())                                    // seen
	low.Each([]int{1}, func(int) { _ = high.Finish() })     // seen
	_ = low.Run(j.own)                                      // its own
	_ = low.Run(func() error { j.shown++; return j.own() }) // its own
	low.Each([]int{1}, func(n int) { j.shown += n })        // its own
	var o low.Options
	o.Finish = step // seen
	_ = low.RunWith(o)
	f := step
	_ = low.Run(f) // seen
	j.finish = step
	_ = low.Run(j.finish) // seen
	_ = through(step)
}
