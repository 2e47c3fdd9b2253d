// SPDX-License-Identifier: Apache-2.0

// Package progress describes running jobs: which processes and communicators have they, and how far has each rank come?
package progress
