// SPDX-License-Identifier: Apache-2.0

// Package takeover defines with which state a collector continues that takes over from a dead one.
package takeover
