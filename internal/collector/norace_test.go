// SPDX-License-Identifier: Apache-2.0

//go:build !race

package collector

// underRace tells that the race detector watches, with which all takes several times as long.
const underRace = false
