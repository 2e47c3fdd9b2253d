// SPDX-License-Identifier: Apache-2.0

// Package timing makes one time of the times of an operation's members: how long did an operation take, and what is its
// bandwidth?
package timing
