// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A timeline says what of an archive is damaged or missing, on the page, too; an empty page of an archive that should
// have more is none.
func TestTimelineSaysWhatIsMissing(t *testing.T) {
	whole := steadyRun(t, 3, 100_000)
	page := func(dir string) string { return filepath.Join(dir, timelineFile) }
	for _, tc := range []struct {
		name   string
		damage func(dir string) error
		said   string
		shown  bool // there is a page
	}{
		{"the anchor is alone", func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "traces")), os.Remove(filepath.Join(dir, "traces.def")))
		}, "nothing of it can be shown", false},
		{"definitions are cut", func(dir string) error { return os.Truncate(filepath.Join(dir, "traces.def"), 300) },
			"nothing of it can be shown", false},
		{"event files are missing", func(dir string) error {
			files, err := filepath.Glob(filepath.Join(dir, "traces", "*.evt"))
			for _, f := range files {
				err = errors.Join(err, os.Remove(f))
			}
			return err
		}, "nothing of it can be shown", false},
		{"one event file is missing", func(dir string) error {
			return os.Remove(filepath.Join(dir, "traces", "0.evt"))
		}, "0.evt", true},
		{"one event file is cut", func(dir string) error {
			path := filepath.Join(dir, "traces", "0.evt")
			st, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, st.Size()-8))
		}, "0.evt", true},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		testkit.Must(t, errors.Join(os.CopyFS(dir, os.DirFS(whole)), tc.damage(dir)))
		out, err := outputOf(timelineCommand(), dir)
		_, pageErr := os.Stat(page(dir))
		if err == nil || (pageErr == nil) != tc.shown {
			t.Errorf("%s: %v, page: %v\n%s", tc.name, err, pageErr, out)
			continue
		}
		if said := out + err.Error(); !strings.Contains(said, tc.said) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: said %s", tc.name, said)
		}
		testkit.Check(t, !tc.shown || errors.Is(err, exitCode(exitInput)), "%s: %v", tc.name, err)
		_, err = outputOf(timelineCommand(), whole, dir, "-o", filepath.Join(dir, "both.html"))
		testkit.Check(t, err != nil, "%s beside another run: no error", tc.name)
	}
	_, err := outputOf(timelineCommand(), whole)
	testkit.Check(t, err == nil, "whole: %v", err)
}
