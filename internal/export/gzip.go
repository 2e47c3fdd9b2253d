// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// zipped is write, or write through gzip where the path asks for that by its name.
func zipped(path string, write func(io.Writer) error) func(io.Writer) error {
	if !strings.HasSuffix(path, ".gz") {
		return write
	}
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		if err := write(z); err != nil {
			return err
		}
		return z.Close()
	}
}
