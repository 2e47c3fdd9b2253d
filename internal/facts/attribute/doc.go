// SPDX-License-Identifier: Apache-2.0

// Package attribute finds our attributes among those that an archive defines: which attribute of package regions does
// an id stand for?
package attribute
