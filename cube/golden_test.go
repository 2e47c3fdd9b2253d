// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the expected profile anew")

// The bytes of the sample are always the same. What they mean is in sample.print.txt.
func TestSampleIsTheSameBytes(t *testing.T) {
	const path = "testdata/sample.cubex"
	d, v := sample()
	got, err := written(d, v, nil)
	check(t, err)
	if *update {
		check(t, os.WriteFile(path, got, 0o644))
	}
	if !bytes.Equal(got, readFile(t, path)) {
		t.Errorf("%s has other bytes (run with -update to write it anew, then compare texts in cubeprint)", path)
	}
	for name, o := range variants {
		first, err := written(d, v, o)
		check(t, err)
		second, err := written(d, v, o)
		check(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%s: written twice, the profile has other bytes", name)
		}
	}
}
