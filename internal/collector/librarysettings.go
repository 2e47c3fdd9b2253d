// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// noteLibrary notes what decides which operations the library reports: its settings, and on what GPUs it runs.
func (s *shard) noteLibrary(lookup config.Lookup) {
	s.process.LibrarySettings = librarySettings(lookup)
	if s.process.Library == "RCCL" {
		s.process.Architectures = gpu.AMD("")
	}
}

// librarySettings are the variables that the library reads, as far as they are set.
func librarySettings(lookup config.Lookup) map[string]string {
	settings := make(map[string]string)
	for _, name := range hidden.Variables() {
		if value, ok := lookup(name); ok {
			settings[name] = value
		}
	}
	return settings
}
