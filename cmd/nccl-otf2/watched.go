// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// watchPatience is how long a command that looks once waits for collectors that have put off records.
const watchPatience = 5 * time.Second

// watchJob has the collectors of a running job take what they have put off, and returns how many bytes are still.
func watchJob(ctx context.Context, dir string, patience time.Duration) (behind uint64, err error) {
	return (&control.Controller{Dir: dir}).Watch(ctx, patience)
}

// behindText says what cannot be seen.
func behindText(behind uint64, err error) string {
	if err != nil {
		return fmt.Sprintf("what collectors have put off (NCCL_OTF2_BACKLOG) is not looked at: %v", err)
	}
	return fmt.Sprintf("%s of records that collectors have put off are not looked at: look again", units.Bytes(behind))
}
