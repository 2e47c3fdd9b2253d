// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// notFinite finds numbers that are none, and what stands for no minimum or maximum.
var notFinite = regexp.MustCompile(`(?mi)(^|[\s,])-?(inf|nan|1\.79\d*e\+308)([\s,]|$)`)

// With the tools of CubeLib, where they are on the PATH: no package of Debian has them. What they make of profiles by
// the remapping specification that stands in them has no negative time, all time in its parts, and no infinite value in
// any table.
func TestRealCubeLib(t *testing.T) {
	if _, err := exec.LookPath("cube_remap2"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: CubeLib's tools are not on the PATH (docs/cube.md has the results of a run with " +
			"them)")
	}
	for _, name := range []string{"02-allcoll-4p-net", "03-onethread-4r-groups", "05-p2p-3p", "09-straggler-4p"} {
		t.Run(name, func(t *testing.T) {
			dir, _ := play(t, recording(t, name), clock(replay.ClockRecorded))
			a := openArchive(t, filepath.Join(dir, "traces.otf2"))
			p, _, err := cubex.FromArchive(a)
			testkit.Must(t, err)
			file, remapped := filepath.Join(dir, "profile.cubex"), filepath.Join(dir, "summary.cubex")
			testkit.Must(t, p.Write(file, false))
			cubeTool(t, "cube_remap2", "-d", "-s", "-o", remapped, file)
			cubeTool(t, "cube_exclusify", "-o", filepath.Join(dir, "exclusive.cubex"), file)
			metrics := strings.Fields(cubeTool(t, "cube_info", "-l", remapped))
			testkit.Require(t, len(metrics) >= 20, "metrics %v", metrics)
			sums := make(map[string]float64) // own along the metric tree
			for _, m := range metrics {
				for _, z := range []string{"excl", "incl"} {
					for _, v := range cubeValues(t, "-m", m, "-c", "all", "-z", z, "-x", "excl", remapped) {
						testkit.Check(t, v >= -1e-12, "%s, %s: %g", m, z, v)
						if z == "excl" {
							sums[m] += v
						}
					}
				}
				for _, f := range []string{file, remapped} {
					for _, args := range [][]string{{"cube_calltree", "-m", m}, {"cube_calltree", "-i", "-m", m},
						{"cube_stat", "-m", m}} {
						text := cubeTool(t, args[0], append(args[1:], f)...)
						testkit.Equal(t, notFinite.FindString(text), "", "%v of %s", args, filepath.Base(f))
					}
				}
			}
			for _, m := range []string{"time", "execution", "comp", "nccl_time"} {
				testkit.Check(t, sums[m] <= 1e-9, "%g s of %s are in none of its parts", sums[m], m)
			}
			testkit.Check(t, sums["nccl_operation_time"] > 0 && sums["application_time"] > 0, "%v", sums)
		})
	}
}

// cubeTool runs a tool and gives what it prints.
func cubeTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), append(os.Environ(), "LC_ALL=C"), &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, tail(complaints.String()))
	}
	return out.String()
}

// cubeValues are the values that cube_dump prints.
func cubeValues(t *testing.T, args ...string) (values []float64) {
	t.Helper()
	for line := range strings.Lines(cubeTool(t, "cube_dump", append([]string{"-s", "csv"}, args...)...)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 3 {
			continue
		}
		v, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			t.Fatal(fmt.Errorf("cube_dump %v: %q: %w", args, line, err))
		}
		values = append(values, v)
	}
	testkit.Require(t, len(values) != 0, "cube_dump %v prints no values", args)
	return values
}
