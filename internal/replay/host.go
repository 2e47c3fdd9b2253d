// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
)

// HostFile is the path of the host program (host/, in C), below the installation prefix or the folder that `make
// build` fills in the same way. The folder callers beside it has the libraries that can pose as the caller.
const HostFile = "libexec/nccl-otf2/replay-host"

// FindHost returns the path of the host program that belongs to this executable, wherever both are installed.
func FindHost() (string, error) {
	self, err := installed.Tool()
	if err == nil {
		var host string
		if host, err = installed.Program(self, HostFile); err == nil {
			return host, nil
		}
	}
	return "", fmt.Errorf("replay: %w", err)
}
