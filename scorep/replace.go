// SPDX-License-Identifier: Apache-2.0

package scorep

// Replace moves the complete archive traces.otf2 from the folder staging, which must lie on the same file system,
// into dir, in place of one that may be there. While it does, dir has no anchor; nobody sees old definitions with
// new events.
func Replace(staging, dir string) error { return replaceArchive(staging, dir) }
