// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// gzipWriter returns write, or a function that compresses its output if the path ends in .gz.
func gzipWriter(path string, write func(io.Writer) error) func(io.Writer) error {
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
