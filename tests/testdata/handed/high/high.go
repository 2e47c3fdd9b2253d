// SPDX-License-Identifier: Apache-2.0

// Package high is a layer above low.
package high

func Finish() error { return nil }

type Thing struct{}

func (Thing) Finish() error { return nil }
