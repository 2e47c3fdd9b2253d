// SPDX-License-Identifier: Apache-2.0

// Package quantity reads metrics: in which unit are the values of a metric class, and which numbers are they?
package quantity
