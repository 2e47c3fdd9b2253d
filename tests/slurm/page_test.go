// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const page = "../../docs/slurm.md"

var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// recipes are the blocks of the page by heading.
func recipes(t *testing.T) map[string]string {
	found := map[string]string{}
	for _, section := range strings.Split(string(testkit.Read(t, page)), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			testkit.Require(t, found[heading] == "", "%s has two blocks", heading)
			found[heading] = m[1]
		}
	}
	return found
}

// Each block of the page does what the page says.
func TestPage(t *testing.T) {
	pairs := func(name string) archive { return archive{name, "aabb"} }
	want := map[string][]archive{ // JOB is the number of the job that the block starts
		"One archive for each step":             {pairs("nccl-otf2-JOB.0")},
		"Batch scripts":                         {pairs("nccl-otf2-JOB.0")},
		"Tables with the archive":               {pairs("nccl-otf2-JOB.0")},
		"Several steps at a time":               {pairs("nccl-otf2-JOB.0"), pairs("nccl-otf2-JOB.1")},
		"Jobs that are put back into the queue": {pairs("nccl-otf2-JOB.0"), pairs("nccl-otf2-JOB.0.1")},
		"Job arrays":                            {pairs("sweep-JOB-1"), pairs("sweep-JOB-2")},
		"Heterogeneous jobs":                    {{"nccl-otf2-JOB.0", "abbb"}},
		"All jobs of a site":                    {pairs("nccl-otf2-JOB.0")},
		"Launchers through PMI":                 {pairs("nccl-otf2-JOB.0"), {"nccl-otf2-NEXT.0", "aaaa"}},
	}
	found := recipes(t)
	for heading := range want {
		testkit.Check(t, found[heading] != "", "the page has no block %q", heading)
	}
	for heading, text := range found {
		if want[heading] == nil {
			t.Errorf("nothing is known of block %q", heading)
			continue
		}
		t.Run(heading, func(t *testing.T) {
			j := newJob(t)
			j.play(text)
			j.holds(want[heading]...)
			if heading == "Tables with the archive" {
				tables, _ := filepath.Glob(filepath.Join(j.dir, "nccl-otf2-*", "parquet", "*.parquet"))
				testkit.Check(t, len(tables) == 5, "when the step has ended there are %d tables: %q", len(tables),
					tables)
			}
			if heading == "Batch scripts" && !strings.Contains(j.output(), "Rank 2 on node2 made the others wait") {
				t.Errorf("the script's report:\n%s", j.output())
			}
		})
	}
}

// play runs a block: a batch script through sbatch, until it has ended, others by a shell.
func (j *job) play(text string) {
	j.t.Helper()
	if strings.HasPrefix(text, "#!") {
		testkit.Write(j.t, filepath.Join(j.dir, "script"), []byte(text))
		j.must("sbatch", "--output=%A.%a.out", "script") // --wait looks every half minute in the end
		j.gone()
		for line := range strings.Lines(j.must("scontrol", "show", "job", "--oneliner", strconv.Itoa(j.first))) {
			testkit.Contains(j.t, line, " ExitCode=0:0 ")
		}
		return
	}
	j.must("bash", "-euo", "pipefail", "-c", text)
}

// output is what batch scripts printed.
func (j *job) output() (text string) {
	files, _ := filepath.Glob(filepath.Join(j.dir, "*.out"))
	for _, file := range files {
		part := testkit.Value(os.ReadFile(file))(j.t)
		text += fmt.Sprintf("%s:\n%s", filepath.Base(file), part)
	}
	return text
}
