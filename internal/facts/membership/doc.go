// SPDX-License-Identifier: Apache-2.0

// Package membership reads the communicators of an archive: who are their members, which of them are absent, and which
// calls does the archive lack?
package membership
