// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux

package gpu

import "fmt"

// Open says that this program cannot use NVML.
func Open() (Library, error) {
	return nil, fmt.Errorf("%w: this program was built without cgo", ErrNoLibrary)
}
