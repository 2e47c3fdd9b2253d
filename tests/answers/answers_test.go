// SPDX-License-Identifier: Apache-2.0

// Package answers holds what the tool says made ranks wait against jobs of which that is known: recordings of real NCCL
// in which somebody was held up on purpose, and made-up jobs, of which it is worked out what each cause cost
// (docs/answers.md).
//
// It goes the whole way, with the tool as it is built: from callbacks over shards and the archive to `report --format
// json`.
package answers

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// page says how answers are held against the truth, and how often they are right.
const page = "../../docs/answers.md"

// tool is the built tool.
func tool(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../build/nccl-otf2")
	if err == nil {
		_, err = os.Stat(path)
	}
	testkit.Require(t, err == nil, "the tool is not built: run `make build` first: %v", err)
	return path
}

// output runs the tool; an exit code of 1 says that something is wrong with the job, which is so on purpose.
func output(t testing.TB, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(tool(t), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) > 0 {
		err = nil
	}
	if err != nil {
		return nil, errors.New("nccl-otf2 " + strings.Join(args, " ") + ": " + err.Error() + "\n" + stderr.String())
	}
	return out, nil
}

// errNoVerdict says that the report answers nothing.
var errNoVerdict = errors.New("the report has no verdict")

// answer asks for the verdict on an experiment directory, whose archive is made.
func answer(t testing.TB, dir string) (*verdict.Verdict, error) {
	t.Helper()
	out, err := output(t, "report", dir, "--format", "json")
	if err != nil {
		return nil, err
	}
	var report struct {
		Verdict *verdict.Verdict `json:"verdict"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, err
	}
	if report.Verdict == nil {
		return nil, errNoVerdict
	}
	return report.Verdict, nil
}
