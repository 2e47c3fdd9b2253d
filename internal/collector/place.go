// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// notePlace notes what decides which operations the library tells of: its settings, and on what GPUs it runs.
func (r *recording) notePlace(lookup config.Lookup) {
	r.process.LibrarySettings = librarySettings(lookup)
	if r.process.Library == "RCCL" {
		r.process.Architectures = gpu.AMD("")
	}
}

func librarySettings(lookup config.Lookup) map[string]string {
	settings := make(map[string]string)
	for _, name := range hidden.Variables() {
		if value, ok := lookup(name); ok {
			settings[name] = value
		}
	}
	return settings
}
