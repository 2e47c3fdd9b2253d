// SPDX-License-Identifier: Apache-2.0

// Package sizeclass groups operations by size: in which class of sizes is an operation?
package sizeclass
