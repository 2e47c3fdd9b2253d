// SPDX-License-Identifier: Apache-2.0

// Package low is the lowest layer.
package low

type Options struct{ Finish func() error }

type Finisher interface{ Finish() error }

func Run(finish func() error) error  { return finish() }
func RunWith(o Options) error        { return o.Finish() }
func RunAll(f ...func() error) error { return f[0]() }
func RunOn(f Finisher) error         { return f.Finish() }
func Each[T any](all []T, f func(T)) { f(all[0]) }
