// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// unifyAll makes the archive of an experiment directory as the tool does: raw files first.
func unifyAll(dir string) (*scorep.Result, error) {
	hold, err := experiment.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	return scorep.Unify(dir, &scorep.UnifyOptions{Hold: hold, Raw: collector.ConvertAll(hold)})
}
