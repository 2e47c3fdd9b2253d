// SPDX-License-Identifier: Apache-2.0

// Package analysis has what several analyses of archives share: reading in lanes, bringing the members' parts of
// operations together, calls, ranks of the world, and what an archive says about its recording. The analyses are in
// packages below this one. They only compute results; package report presents them.
package analysis
