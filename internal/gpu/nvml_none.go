// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux

package gpu

import "fmt"

// Built says that this program has been built to use NVML.
const Built = false

// Open says that this program cannot use NVML.
func Open() (Library, error) {
	return nil, fmt.Errorf("%w: this nccl-otf2 was built without cgo: build it where there is a C compiler",
		ErrNoLibrary)
}
