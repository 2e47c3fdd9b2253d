// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// noteLibrary notes what decides which operations the library reports: its settings, and on what GPUs it runs.
func (s *shard) noteLibrary(lookup config.Lookup) {
	s.process.LibrarySettings = hidden.Settings(lookup)
	if s.process.Library == "RCCL" {
		s.process.Architectures = gpu.AMD("")
	}
}
