// SPDX-License-Identifier: Apache-2.0

// Package files handles the files of archives. Events links, copies, repairs and joins the event files of shards.
// Staging replaces one archive by another as a whole.
package files
