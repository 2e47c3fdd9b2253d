// SPDX-License-Identifier: Apache-2.0

// Package flock locks files between processes: who has a file locked, and can files be locked there at all?
package flock
