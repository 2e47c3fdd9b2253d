// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux

package gpu

import "fmt"

// Built reports that this program was built without NVML support.
const Built = false

// Open returns ErrNoLibrary.
func Open() (Library, error) {
	return nil, fmt.Errorf("%w: this nccl-otf2 was built without cgo: build it where there is a C compiler",
		ErrNoLibrary)
}
