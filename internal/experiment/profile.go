// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// Profile mode: a shard has no event files but one file with the sums of its events, which is replaced as a whole.
const (
	profileFile = "profile.json"
	// durableProfile is profile.json as of durable.json.
	durableProfile = "durable-profile.json"
)

// WriteProfile replaces the sums of the events.
func (s *Store) WriteProfile(content []byte) error {
	return s.replace(profileFile, content, atomicfile.Volatile)
}

// ProfileFile returns the path of a shard's sums of events.
func ProfileFile(path string) string { return filepath.Join(path, profileFile) }

// DurableProfile returns the path of an earlier profile that survives a power cut.
func DurableProfile(path string) string { return filepath.Join(path, durableProfile) }
