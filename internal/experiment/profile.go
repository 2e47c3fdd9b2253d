// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// Profile mode: a shard has no event files but one file with what its events came to, which is replaced as a whole.
const (
	profileFile = "profile.json"
	// durableProfile is profile.json as of durable.json.
	durableProfile = "durable-profile.json"
	modeKey        = "MODE" // of Process.Settings
	modeProfile    = "profile"
)

// IsProfile tells that the process's events were summed up instead of written.
func (p *Process) IsProfile() bool { return p != nil && p.Settings[modeKey] == modeProfile }

// WriteProfile replaces what the events came to.
func (s *Store) WriteProfile(content []byte) error {
	return s.replace(profileFile, content, atomicfile.Volatile)
}

// ProfileFile is the path of what the events of a shard came to.
func ProfileFile(path string) string { return filepath.Join(path, profileFile) }

// DurableProfile is the path of what was the profile some time ago and survives a power cut.
func DurableProfile(path string) string { return filepath.Join(path, durableProfile) }
