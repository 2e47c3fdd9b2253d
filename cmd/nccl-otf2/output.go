// SPDX-License-Identifier: Apache-2.0

package main

import "os"

// output is standard output where that is no terminal: a file, a pipe, a device. It keeps the first error, so that who writes a result there need
// not look at each one: Main does, once.
type output struct {
	file *os.File
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
