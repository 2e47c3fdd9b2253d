// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A settings file of any size, or what is none, is refused before it is read.
func TestSettingsFileIsBounded(t *testing.T) {
	for _, kind := range []string{"yaml", "toml", "json"} {
		sparse, pipe := filepath.Join(t.TempDir(), "sparse."+kind), filepath.Join(t.TempDir(), "pipe."+kind)
		testkit.Must(t, os.WriteFile(sparse, nil, 0o600))
		testkit.Must(t, os.Truncate(sparse, 6<<30))
		testkit.Must(t, syscall.Mkfifo(pipe, 0o600))
		for path, want := range map[string]string{sparse: "too large", pipe: "is not a regular file"} {
			_, err := Load(func(name string) (string, bool) { return path, name == Prefix+"CONFIG" })
			testkit.Check(t, err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), path),
				"%s: %v, want %q", path, err, want)
		}
	}
}
