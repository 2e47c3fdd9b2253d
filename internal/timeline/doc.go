// SPDX-License-Identifier: Apache-2.0

// Package timeline makes an HTML page that shows an archive over time: a row for each location, a bar for each region,
// a curve for each metric, and lines from calls to what they caused, through the parts of a collective and along
// transfers.
//
// The page's data are blocks, each compressed by itself, so that the page unpacks only what it shows (format.go
// specifies them). The page contains the blocks, or a server on this machine sends them on request.
//
// An archive is read once, and a second time for the traffic between ranks if it can have transfers. Memory does not
// grow with the archive: what is read is kept in unnamed temporary files, in two forms.
//
//   - Streams (spool.go) hold what is known when a region ends, by location and depth. Regions of one depth do not
//     overlap, so they end in the order of the page. A region's address (location, depth, index) is known when it
//     begins; bars are numbered in the order of addresses.
//   - Sorters (sorter.go) put everything else into the order of addresses, by merging sorted runs on disk: what caused
//     a region (joined by the ids of NCCL's events), its children, waits and operations, the parts of each instance,
//     and durations of transfers. store.go lists them; settle.go derives one from another.
//
// Values of metrics come in the order of the page, so their blocks are compressed at once (metric.go). All other blocks
// are then made lane by lane from a stream and the sorters, as often as needed. Memory holds buffers, open regions,
// transfers and instances, sums of metrics, and the present block, in which only the list of a region's children is
// unbounded. Archives of some ten thousand regions need no files.
//
// The page itself is in page/, in TypeScript; `make page` builds asset/ from it.
package timeline
