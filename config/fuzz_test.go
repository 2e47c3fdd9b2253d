// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// FuzzSettings: whatever stands in a settings file, it gives settings, or an error in one line that names the file.
func FuzzSettings(f *testing.F) {
	f.Add(uint8(0), []byte("events: gpu\nmemory: 64MiB\nwindow: 10-20\n"))
	f.Add(uint8(0), []byte("a: &a [1, *a]\nevents: [Coll, P2p]\n"))
	f.Add(uint8(1), []byte("memory = \"64MiB\"\nmetrics = true\n"))
	f.Add(uint8(2), []byte(`{"events": "light", "disk": 1e9, "cpus": "0-3", "cupti": ["kernel"]}`))
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		path := filepath.Join(t.TempDir(), "settings."+[]string{"yaml", "toml", "json"}[kind%3])
		testkit.Must(t, os.WriteFile(path, text, 0o600))
		s, err := Load(func(name string) (string, bool) { return path, name == Prefix+"CONFIG" })
		testkit.Require(t, (s == nil) != (err == nil), "%v, %v", s, err)
		testkit.Check(t, err == nil || !strings.Contains(err.Error(), "\n"), "more than a line: %q", err)
		if s != nil {
			s.Texts()
		}
	})
}
