// SPDX-License-Identifier: Apache-2.0

// Package selfreport collects what an archive says of its own recording: what is missing in it, what did recording
// cost, and in what do its processes differ?
package selfreport
