// SPDX-License-Identifier: Apache-2.0

// Package timeline makes a page of HTML that shows an archive in time: a row for each location, a bar for each
// region, a curve for each metric, lines from calls to what they caused, through the parts of a collective and along
// transfers.
//
// An archive is read once (a second time for who sent whom how much). What the page needs is kept in memory in
// columns, some 60 bytes per region (values of metrics are compressed at once), and written in blocks that are compressed by themselves, so that the page unpacks
// only what it shows (format.go says how they look). The same blocks stand in the page, or are sent to it by a server
// on this machine when it asks for them.
//
// The page itself is in page/, in TypeScript. `make page` makes asset/ of it.
package timeline
