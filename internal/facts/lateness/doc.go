// SPDX-License-Identifier: Apache-2.0

// Package lateness compares when the members of a collective came: who was late, and how long did others wait for it?
package lateness
