// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// notePlace notes what decides which operations the library tells of: its settings, and on what GPUs it runs.
func (r *recording) notePlace(lookup config.Lookup) {
	p := r.process
	p.LibrarySettings = make(map[string]string)
	for _, name := range hidden.Variables() {
		if value, ok := lookup(name); ok {
			p.LibrarySettings[name] = value
		}
	}
	if p.Library == "RCCL" {
		p.Architectures = gpu.AMD("")
	}
}
