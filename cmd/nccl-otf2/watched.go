// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// watchPatience is how long a command that reads once waits for collectors to process records that they have put off.
const watchPatience = 5 * time.Second

// watchJob makes the collectors of a running job process the records that they have put off, and waits at most
// patience. It returns the number of bytes that are still unprocessed.
func watchJob(ctx context.Context, dir string, patience time.Duration) (behind uint64, err error) {
	return (&control.Controller{Dir: dir}).Watch(ctx, patience)
}

// behindText describes which records are not included.
func behindText(behind uint64, err error) string {
	if err != nil {
		return fmt.Sprintf("what collectors have put off (NCCL_OTF2_BACKLOG) is not looked at: %v", err)
	}
	return fmt.Sprintf("%s of records that collectors have put off are not looked at: look again", units.Bytes(behind))
}
