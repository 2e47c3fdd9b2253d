// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ViTE, Debian's viewer of traces, reads archives and simple views without an error, and draws all rows.
func TestViTEReadsArchives(t *testing.T) {
	need.Program(t, "vite", "Debian: vite")
	for _, name := range []string{"02-allcoll-4p-net", "05-p2p-3p"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, recording(t, name), clock(replay.ClockRecorded))
			res := testkit.Value(view.Simple(filepath.Join(dir, "traces.otf2"), filepath.Join(dir, "simple"), nil))(t)
			for _, anchor := range []string{filepath.Join(dir, "traces.otf2"), res.Archive} {
				picture := filepath.Join(t.TempDir(), "trace.svg")
				cmd := exec.Command("vite", "-e", picture, anchor)
				cmd.Env = append(os.Environ(), "QT_QPA_PLATFORM=offscreen", "XDG_RUNTIME_DIR="+t.TempDir())
				out, err := cmd.CombinedOutput()
				if err != nil || !bytes.Contains(out, []byte("0 errors and 0 warnings were found")) {
					t.Fatalf("vite: %v\n%s", err, tail(string(out)))
				}
				drawn := testkit.Value(os.ReadFile(picture))(t)
				a := opened(t, anchor)
				for _, l := range a.Defs.Locations {
					if row := a.Defs.String(l.Name); l.Type != otf2.LocationTypeMetric && l.Events > 0 &&
						!strings.Contains(string(drawn), ">"+row+"_") {
						t.Errorf("%s: no row %q", anchor, row)
					}
				}
			}
		})
	}
}
