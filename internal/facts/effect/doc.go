// SPDX-License-Identifier: Apache-2.0

// Package effect reads single events: what does an event do to its row, and which region does it end?
package effect
