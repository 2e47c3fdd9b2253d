// SPDX-License-Identifier: Apache-2.0

// Package analysis holds what several questions need of archives: reading in lanes, operations with their members
// brought together, calls, ranks of the world, what an archive says of its recording. The questions have folders of
// their own below: numbers only; how they look is decided in package report.
package analysis
