// SPDX-License-Identifier: Apache-2.0

// Package naming reads the names of regions and of rows: what does a region or a row of an archive show?
package naming
