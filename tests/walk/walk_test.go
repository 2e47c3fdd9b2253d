// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const page = "# A page\n\n```sh\nx=1\nprintf 'a   b c\\nvm is here\\n'\n```\n\nprints\n\n```text\na b…\nnode1 is\n```\n\n```sh\necho $x; cat >f <<'END'\nq\nEND\n```\n\n```text\n1\n```\n"

// play walks a page without its test.
func play(t *testing.T, page string) (missing []string, err error) {
	t.Helper()
	blocks := testkit.Value(Blocks(page))(t)
	c := exec.Command("bash", "-euo", "pipefail")
	c.Dir, c.Stdin = t.TempDir(), strings.NewReader(Script(blocks))
	out, err := c.CombinedOutput()
	return Missing(blocks, string(out), "vm", "node1"), err
}

func TestWalk(t *testing.T) {
	missing, err := play(t, page)
	testkit.Check(t, len(missing) == 0 && err == nil, "%q, %v", missing, err)
}

// What a page shows and is not printed, printed in another order, or by another block, is told with its line.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"not printed":   {"```text\n1\n", "```text\n2\n", "line 21: shown and not printed there: 2"},
		"another order": {"a b…\nnode1 is\n", "node1 is\na b…\n", "line 10: shown and not printed there: a b…"},
		"in part":       {"a b…\n", "a…x\n", "line 10: shown and not printed there: a…x"},
		"another block": {"```text\n1\n", "```text\na b\n", "line 21: shown and not printed there: a b"},
	} {
		missing, err := play(t, strings.Replace(page, c.from, c.to, 1))
		testkit.Check(t, err == nil && slices.Equal(missing, []string{c.want}), "%s: %q, %v", name, missing, err)
	}
}

// Where a command fails the rest is not reached.
func TestFails(t *testing.T) {
	missing, err := play(t, strings.Replace(page, "x=1\n", "false\n", 1))
	testkit.Check(t, err != nil && slices.Contains(missing, "line 15: was not reached"), "%q, %v", missing, err)
}

// Of a page that is no tutorial only commands are walked.
func TestCommands(t *testing.T) {
	blocks, err := Commands("```\nmake\n```\n" + page +
		"```sql\nSELECT\n```\n```text\nrows\n```\n```sh\nls\n```\n## B\n```text\nc\n```\n")
	testkit.Check(t, err == nil && len(blocks) == 5 && blocks[0].Language == "sh", "%v, %v", blocks, err)
	blocks, err = Commands("```\nmake\n```\n")
	testkit.Check(t, err != nil, "%v", blocks)
}

// All blocks are found, those in lists, too.
func TestFences(t *testing.T) {
	found := Fences("* a\n\n  ```bash\n  ls\n  ```\n" + page)
	testkit.Check(t, len(found) == 5 && found[0] == (Block{3, "bash", "  ls\n"}) && found[1].First() == "x=1" &&
		found[4].Text == "1\n", "%v", found)
}

func TestBlocksThatNothingRuns(t *testing.T) {
	for name, page := range map[string]string{
		"no commands":                        "# A page\n",
		"without language":                   page + "```\nls\n```\n",
		"another language":                   page + "```console\n$ ls\n```\n",
		"no commands before what is printed": "```text\n1\n```\n" + page,
		"without end":                        page + "```sh\nls\n",
	} {
		blocks, err := Blocks(page)
		testkit.Check(t, err != nil, "%s: %v", name, blocks)
	}
}
