// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
)

// TestSettingsPage keeps the table on docs/settings.md equal to that of this package. `make generate` writes it anew.
func TestSettingsPage(t *testing.T) {
	golden.Section(t, "../docs/settings.md", "settings", markdown())
}

// markdown is the table of settings for the documentation.
func markdown() string {
	var b strings.Builder
	b.WriteString("| variable | key in a file | kind | default | meaning |\n|---|---|---|---|---|\n")
	for i := range Table {
		s := &Table[i]
		key, kind, def := "`"+strings.ToLower(s.Key)+"`", string(s.Kind), "–"
		switch {
		case s.Key == "CONFIG":
			key = "–"
		case s.Early:
			key += " ¹"
		}
		if s.Kind == Choice {
			kind = "`" + strings.Join(s.Choices, "`, `") + "`"
		}
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Env(), key, kind, def, s.Help)
	}
	b.WriteString(
		"\nSizes are bytes, or units of 1024 (`K`, `M`, `G`, also as `MB` and `MiB`): `512M` is `512 MiB`. Words may be in upper case, and lists may use commas or blanks. " +
			"Blanks around a value are ignored; a value of blanks alone counts as not set.\n")
	b.WriteString(
		"\n¹ The plugin reads it before anything else, from the environment only; `nccl-otf2 run` passes it on from a file.\n\n" +
			"`" + MaskVariable + "` (decimal or 0x), which other profiler plugins use, is honored where `" + Prefix +
			"EVENTS` is not set.\n")
	return b.String()
}
