// SPDX-License-Identifier: Apache-2.0

// Package property has the names of the properties of archives, and reads them: what does an archive say of itself, of
// its communicators' parents, of its hosts' clocks, of ranks that recorded different operations?
package property
