// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The bytes of the sample are always the same. What they mean is in sample.print.txt.
func TestSampleIsTheSameBytes(t *testing.T) {
	d, v := sample()
	got, err := written(d, v, nil)
	check(t, err)
	golden.Text(t, "testdata/sample.cubex", string(got)) // run with -update here, then compare texts in cubeprint
	for name, o := range variants {
		first, err := written(d, v, o)
		check(t, err)
		second, err := written(d, v, o)
		check(t, err)
		testkit.Check(t, bytes.Equal(first, second), "%s: written twice, the profile has other bytes", name)
	}
}
