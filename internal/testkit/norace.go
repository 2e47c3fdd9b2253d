// SPDX-License-Identifier: Apache-2.0

//go:build !race

package testkit

// UnderRace reports whether the race detector watches, with which all takes several times as long.
const UnderRace = false
