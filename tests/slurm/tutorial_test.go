// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/tests/walk"
)

// A reader who does what the tutorial says sees what it shows.
func TestTutorial(t *testing.T) {
	j := newJob(t)
	walk.Page(t, "../../docs/tutorials/slurm.md", func(script string) (string, error) {
		c := j.command("bash", "-euo", "pipefail", "-c", script)
		out, err := c.CombinedOutput()
		return string(out), err
	})
	// The jobs are: doctor, exp1, the batch script, its report.
	j.holds(archive{"exp1", "aabb"}, archive{fmt.Sprintf("nccl-otf2-%d.0", j.first+2), "aabb"})
}
