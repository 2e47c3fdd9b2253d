// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Origin is what a recording says of the machine and the library of one of its processes.
type Origin struct {
	Host           string // units.UnknownHost if the recording does not say
	BootID         string // processes with the same one share their clocks
	Library        shm.Library
	LibraryVersion int // as ncclGetVersion reports it; 0: unknown
	API            int // version of the plugin interface
}

// Origin returns the origin of a process. All processes of a recording that names no machines were on one machine.
func (rec *Recording) Origin(p *Process) (Origin, error) {
	version, err := VersionCode(rec.Run.NCCL)
	if err != nil {
		return Origin{}, fmt.Errorf("recording %s: %w", rec.Name, err)
	}
	if rec.Run.Guessed {
		version = 0
	}
	open := p.Opens[0]
	o := Origin{Host: cmp.Or(open.Host, units.UnknownHost), BootID: cmp.Or(open.Boot, "recording "+rec.Name),
		LibraryVersion: version, API: open.API}
	switch strings.ToLower(rec.Run.Library) {
	case "", "nccl":
		o.Library = shm.LibraryNCCL
	case "rccl":
		o.Library = shm.LibraryRCCL
	}
	return o, nil
}

// Mask returns the types of events that NCCL was asked for during the recording of a process, of those that the
// version of the plugin interface has.
func (p *Process) Mask() (mask uint32) {
	for _, o := range p.Opens {
		mask |= uint32(o.Mask)
	}
	for _, x := range p.Contexts {
		mask |= uint32(x.Mask)
	}
	return mask & api.Known(p.Opens[0].API)
}
