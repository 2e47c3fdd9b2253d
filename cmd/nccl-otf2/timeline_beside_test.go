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

// Two runs make one page, with what diff says of them; what is not for two is said.
func TestTimelineOfTwoRuns(t *testing.T) {
	before, after := steadyRun(t, 40, 100_000), steadyRun(t, 40, 108_000)
	out := tool(t, "timeline", before, after)
	page := testkit.Value(os.ReadFile(filepath.Join(before, besideFile)))(t)
	n := strings.Count(string(page), "<iframe ")
	testkit.Check(t, n == 2 && strings.Contains(out, besideFile), "%d frames; said: %s", n, out)
	said, _, _ := strings.Cut(string(page), "</pre>")
	if said = said[strings.Index(said, "<pre"):]; !strings.Contains(
		said, "1 of 1 kind of operations changed: 1 slower, 0 faster.") {
		t.Errorf("what differs: %s", said)
	}
	for _, tc := range []struct {
		want  string
		usage bool
		args  []string
	}{
		{"--serve is for one run", true, []string{before, after, "--serve"}},
		{"takes no argument", true, []string{before, after, before}},
		{"needs an experiment", true, nil},
		{"does not exist", false, []string{before, filepath.Join(after, "nowhere")}},
		{"the program marked no phases", false, []string{before, after, "--phase", "none"}},
	} {
		cmd := rootCommand()
		cmd.SetArgs(append([]string{"timeline"}, tc.args...))
		err := cmd.Execute()
		testkit.Check(t, err != nil && strings.Contains(err.Error(), tc.want) &&
			errors.As(err, new(usageError)) == tc.usage, "%q: %v, want %s", tc.args, err, tc.want)
	}
}
