// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
)

// HostFile is the host program (host/, in C), in the folder that `make build` fills as in a prefix that it is installed
// to. Beside it is the folder callers, with the libraries that can seem to call.
const HostFile = "libexec/nccl-otf2/replay-host"

// FindHost gives the path of the host program that belongs to this executable, wherever both are installed.
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
