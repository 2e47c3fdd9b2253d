// SPDX-License-Identifier: Apache-2.0

// Package loss has the reasons for which data are missing, as shards and archives state them.
package loss
