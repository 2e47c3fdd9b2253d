// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What is said of a recording that is looked at is what is said of the archive that playing it makes: the plugin and
// its host add nothing. Left out is what they make up: the process and its host, the address of its GPU, the release of
// the library.
func TestRecordingsAreLookedAt(t *testing.T) {
	t.Parallel()
	host := testkit.Value(os.Hostname())(t)
	for _, rec := range recordings(t, "02-allcoll-4p-net", "03-onethread-4r-groups", "07-twocomms-streams",
		"10-graph-3p") {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, rec, clock(replay.ClockRecorded), env("NCCL_OTF2_EVENTS=all"))
			for _, section := range []string{"", "--tally", "--nccl-tests"} {
				played, looked := reported(t, dir, section, host), reported(t, rec.Dir, section, host)
				testkit.Equal(t, cmp.Diff(played, looked), "", "report %s: played (−) and looked at (+):\n", section)
			}
		})
	}
}

// reported is what a section of the report says, in JSON, without what is of processes.
func reported(t *testing.T, dir, section, host string) any {
	t.Helper()
	args := []string{"report", dir, "--format", "json"}
	if section != "" {
		args = append(args, section)
	}
	cmd := exec.Command(builtFile(t, "nccl-otf2"), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out := testkit.Output(t, cmd)
	var said any
	testkit.Must(t, json.Unmarshal(out, &said))
	left, _ := filepath.Glob(filepath.Join(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):], "*"))
	testkit.Check(t, len(left) == 0, "left behind: %q", left)
	return plain(said, host)
}

// plain takes out of JSON what is of processes.
func plain(v any, host string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"archive", "creator", "hidden", "pid", "pci",
			"text"} { // text: sentences that name hosts
			delete(v, key)
		}
		for key, value := range v {
			v[key] = plain(value, host)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i], host)
		}
	case string:
		if v == host || v == "node1" {
			return "host"
		}
	}
	return v
}
