// SPDX-License-Identifier: Apache-2.0

// Package files handles the files of archives: it links, copies, mends and joins the event files of shards (Events),
// and puts a whole archive in the place of an earlier one, so that there is always one or the other (Staging).
package files
