// SPDX-License-Identifier: Apache-2.0

// Package lookup finds the value of a location or a region without a map where it can.
package lookup
