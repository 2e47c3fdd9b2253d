// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"github.com/nccl-otf2/nccl-otf2/collector"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// unifyAll makes the archive of an experiment directory as the tool does: raw files first.
func unifyAll(dir string) (*scorep.Result, error) {
	raw, err := collector.ConvertAll(dir)
	if err != nil {
		return nil, err
	}
	return scorep.Unify(dir, &scorep.UnifyOptions{Raw: raw})
}
