// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/walk"
)

// A page's blocks are tagged: sh is run by a test, bash are commands that none can run here, and others show text.

// walkers are the tests that run the blocks of pages in sh, by page: those that visits does not name.
var walkers = map[string]string{
	"docs/slurm.md":           "tests/slurm.TestPage",
	"docs/tutorials/slurm.md": "tests/slurm.TestTutorial",
}

// unrun are the blocks in bash: by page and the begin of their first line why no test runs them, and which test comes closest, if there is one.
var unrun = map[string]map[string]struct{ why, test string }{
	"README.md": {
		"make demo ": {"builds; what it prints is compared with the page", "cmd/nccl-otf2.TestREADMEHasTheDemo"},
		"make build && sudo make install PREFIX=/opt/nccl-otf2":                                     {"builds; installing what is built", "tests.TestInstall"},
		"NCCL_OTF2_START=paused nccl-otf2 run --dir exp1 -- torchrun --nproc-per-node 8 train.py &": {"orders to a job that runs: when is up to the reader", "cmd/nccl-otf2.TestSessions"},
		"mpirun -x NCCL_PROFILER_PLUGIN=":                                                           {"its collectors are still at work when it has ended", "tests/slurm.TestPage"},
		"go mod edit ": {
			"needs a module of the reader's", "tests.TestLibrariesServeOtherModules"},
	},
	"docs/install.md": {
		"make build PREFIX=/opt/nccl-otf2":                    {"builds; installing what is built", "tests.TestInstall"},
		"tar xzf nccl-otf2-0.1.0-linux-x86_64.tar.gz -C /opt": {"needs the packages", "tests/packages.TestArchiveRecords"},
		"pip install nccl_otf2-0.1.0-*.whl":                   {"needs the packages", "tests/packages.TestWheel"},
		"dpkg -i nccl-otf2_0.1.0_amd64.deb":                   {"needs the packages, and changes the machine", "tests/packages.TestDebInACleanRoot"},
	},
	"docs/answers.md":     {"go test ./tests/answers ": {"runs a test", "tests/answers.TestJobs"}},
	"docs/reliability.md": {"go test ./tests/faults ": {"runs a test, and the second one for an hour", "tests/faults.TestFaults"}},
	"docs/export.md": {
		"export NCCL_OTF2_PROMETHEUS=":             {"needs a node exporter's folder", "tests.TestMetricsBySetting"},
		"nccl-otf2 export exp1 --perfetto --with ": {"needs traces of PyTorch's profiler", "cmd/nccl-otf2.TestExportMergesTraces"},
	},
	"docs/cube.md": {"scalasca -examine exp1 ": {
		"needs Scalasca and CubeLib", "tests.TestRealCubeLib"}},
	"docs/scalasca.md": {
		"nccl-otf2 view --scalasca exp1":                 {"needs Scalasca", "analysis/scalasca.TestRealScout"},
		"nccl-otf2 replay $R --clock recorded --dir exp": {"needs Scalasca", "analysis/scalasca.TestRealScout"},
	},
	"docs/scorep.md": {
		"scorep --user --thread=pthread mpicc ":                            {"needs Score-P", "tests.TestRealScorepGetsTheCalls"},
		"export LD_LIBRARY_PATH=/path/to/nccl-otf2/build:$LD_LIBRARY_PATH": {"needs Score-P", "tests.TestRealScorepGetsTheCalls"},
		"sources=$(ls replay/host/*.c | grep -v /library.c)":               {"needs Score-P", "tests.TestRealScorepGetsTheCalls"},
		"SCOREP_ENABLE_TRACING=true nccl-otf2 run -- mpirun -np 4 ./train": {"needs Score-P", "tests.TestRealScorepGetsTheCalls"},
		"nccl-otf2 merge ": {"needs a measurement of Score-P", "cmd/nccl-otf2.TestSessions"},
	},
	"docs/gpu-runs.md": {
		"make gpu-test":           {"needs a GPU", "tests/gpu.TestWholeRun"},
		"build/gputest --out DIR": {"needs a GPU", "tests/gpu.TestWholeRun"},
	},
	"docs/nccl-releases.md": {"make real-nccl ": {"takes an hour; make test runs a part of it", "tests.TestRealNCCL"}},
	"docs/performance.md":   {"scripts/bench.sh ": {"measures for minutes, on a machine that does nothing else", "tests/bench/measure.TestPage"}},
	"docs/realnccl.md":      {"build/realnccl/": {"needs a published library, which the test fetches", "tests.TestRealNCCL"}},
	"docs/scale.md":         {"go test ./tests/scale ": {"takes half an hour; make test runs fewer ranks", "tests/scale.TestLateRankAmongMany"}},
	"docs/tables.md":        {"srun -n 16 sh -c ": {"needs a Slurm; parts are compared with the whole", "export.TestPartsAreTheWholeTable"}},
	"docs/timeline.md":      {"nccl-otf2 timeline exp1 --serve": {"serves until it is ended", "cmd/nccl-otf2.TestServedPageCanBeEndedAtOnce"}},
}

// indented finds commands that are set off without a block.
var indented = regexp.MustCompile(`(?m)^\n    ([A-Z_]+=\S* )*(nccl-otf2|make|go|srun|mpirun|scripts/|build/).*$`)

// command finds lines that somebody would copy into a shell.
var command = regexp.MustCompile(`^\s*(\$ |([A-Z_]+=\S* )*(nccl-otf2|make|export|srun|sbatch|mpirun|torchrun|pip|python3?|go|docker|tar|sudo|git|cd|scalasca|scorep|otf2-print) [^=│])`)

// beginOf is the one of the begins of first lines that a block has; "" if none.
func beginOf[T any](b walk.Block, begins map[string]T) string {
	for begin := range begins {
		if strings.HasPrefix(b.First(), begin) {
			return begin
		}
	}
	return ""
}

// Every block of commands is run by a test, or in the list of those that none can run; and the lists name what there is.
func TestBlocksOfPagesAreRun(t *testing.T) {
	listed := 0
	for _, path := range docPages(t) {
		page := strings.TrimPrefix(path, "../")
		found := map[string]bool{}
		for _, line := range indented.FindAllString(codeFences.ReplaceAllString(string(testkit.Read(t, path)), ""), -1) {
			t.Errorf("%s: a command that is indented, not in a block: %q", page, line)
		}
		for _, b := range walk.Fences(string(testkit.Read(t, path))) {
			switch b.Language {
			case "sh":
				if _, visited := visits[page]; !visited && walkers[page] == "" {
					t.Errorf("%s:%d: a block in sh, and no test walks the page", page, b.Line)
				}
			case "bash":
				first := beginOf(b, unrun[page])
				found[first] = true
				if unrun[page][first].why == "" {
					t.Errorf("%s:%d: a block in bash of which nobody says why no test runs it: %q", page, b.Line, b.First())
				}
			case "":
				t.Errorf("%s:%d: a block without a language", page, b.Line)
			case "text":
				for line := range strings.Lines(b.Text) {
					if command.MatchString(line) {
						t.Errorf("%s:%d: a command in text: %q", page, b.Line, line)
					}
				}
			}
		}
		for first := range unrun[page] {
			if listed++; !found[first] {
				t.Errorf("%s has no block that begins with %q", page, first)
			}
		}
	}
	for _, of := range unrun {
		listed -= len(of)
	}
	if listed != 0 {
		t.Error("a page is listed that is none")
	}
}

// The tests that the lists name exist, and those that walk a page name it.
func TestWalkersAreThere(t *testing.T) {
	tested := func(name string) string {
		folder, test, _ := strings.Cut(name, ".")
		code := testCode(t, folder)
		if !strings.Contains(code, "\nfunc "+test+"(t *testing.T) {") {
			t.Errorf("%s: there is no such test", name)
		}
		return code
	}
	for page, name := range walkers {
		if !strings.Contains(tested(name), filepath.Join("../..", page)+`"`) {
			t.Errorf("%s does not name %s", name, page)
		}
	}
	for _, of := range unrun {
		for _, closest := range of {
			tested(closest.test)
		}
	}
}
