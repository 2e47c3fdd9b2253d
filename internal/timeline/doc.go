// SPDX-License-Identifier: Apache-2.0

// Package timeline makes a page of HTML that shows an archive in time: a row for each location, a bar for each
// region, a curve for each metric, lines from calls to what they caused, through the parts of a collective and along
// transfers.
//
// What the page needs is written in blocks that are compressed by themselves, so that the page unpacks
// only what it shows (format.go says how they look). The same blocks stand in the page, or are sent to it by a server
// on this machine when it asks for them.
//
// An archive is read once (a second time for who sent whom how much, if it can have transfers). Memory does not grow
// with it: what is read lies in temporary files without names, in two forms.
//
//   - Streams (spool.go) have what is known when a region ends, by location and depth: regions of one depth follow each
//     other, so that they end in the order in which the page has them. A region's address (location, depth, and which of
//     those it is) is known when it begins; bars are numbered in the order of addresses.
//   - Sorters (sorter.go) put everything else in the order of addresses, by runs on disk that are merged: what asked for
//     a region (names of NCCL's events are joined with who has them), its children, its waits and operations, the parts
//     of each instance, how long transfers took. store.go lists them; settle.go makes one of the other.
//
// Values of metrics come in the order of the page: their blocks are packed at once (metric.go).
//
// The blocks are then made lane by lane from a stream and the sorters side by side, as often as wanted. In memory are
// buffers, what is pending (regions, transfers and instances that have not ended), sums of metrics, and the block at
// hand, of which the numbers of a region's children are the part that has no bound. Archives of some ten thousand
// regions need no files.
//
// The page itself is in page/, in TypeScript. `make page` makes asset/ of it.
package timeline
