// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// archiveTargets are the fuzz targets of the readers that all share who open an archive.
var archiveTargets = []string{"otf2 FuzzAnchor", "otf2 FuzzEvents", "otf2 FuzzGlobalDefs", "otf2 FuzzLocalDefs", "otf2 FuzzMarkers", "otf2 FuzzSnapshots", "otf2 FuzzThumbnails"}

// fuzzedReaders are, for each command, the fuzz targets of what it reads that others may have written. "archive": archiveTargets.
var fuzzedReaders = map[string][]string{
	"run":      {"config FuzzSettings", "config FuzzPlugin", "collector FuzzMemory", "plugin/shm FuzzDecode", "gpu FuzzIdentities", "cupti FuzzParse", "cupti FuzzFunctionName", "collector/timeservice FuzzParse"},
	"ctl":      {"collector/control FuzzOrders"},
	"replay":   {"replay FuzzRecLines", "replay FuzzRun"},
	"unify":    {"scorep FuzzShardDescription", "collector FuzzSpool", "collector FuzzCheckpoint", "collector FuzzMemory", "plugin/shm FuzzSpool", "regions FuzzRecords", "regions FuzzActivities"},
	"report":   {"archive", "facts FuzzReader", "report FuzzAnalysis", "report FuzzHang", "analysis/hang/ras FuzzStatus"},
	"query":    {"export FuzzExports"}, // the tables themselves are DuckDB's to read
	"top":      {"report FuzzLive", "report FuzzHang"},
	"diff":     {"archive", "report FuzzAnalysis"},
	"profile":  {"archive", "profile/cubex FuzzArchiveProfile", "profile/cubex FuzzAggregates"},
	"timeline": {"archive", "timeline FuzzRead", "timeline FuzzRequests"},
	"print":    {"archive", "otf2/otf2print FuzzPrint", "cube FuzzAnchor", "cube FuzzIndex", "cube FuzzProfile", "internal/printable FuzzName"},
	"export":   {"archive", "export FuzzExports"},
	"import":   {"ingest FuzzImport", "internal/mend FuzzJSON"},
	"merge":    {"archive", "scorep FuzzMerge"},
	"view":     {"archive", "view FuzzView", "view FuzzSimple"},
	"doctor":   {"cmd/nccl-otf2/internal/doctor FuzzLibrary", "cmd/nccl-otf2/internal/doctor FuzzLoaderCache", "config FuzzSettings"},
	"check":    {"archive", "report FuzzCheck"},
	"recover":  {"archive", "otf2 FuzzRecover"},
	// These read nothing.
	"version": nil, "help": nil, "completion": nil,
}

// Each command's readers have fuzz targets: commands and targets are all in the list, and what is in the list is there.
func TestEveryCommandsReadersAreFuzzed(t *testing.T) {
	help, err := exec.Command(builtFile(t, "nccl-otf2"), "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) {2,}[A-Z]`).FindAllSubmatch(help, -1) {
		commands = append(commands, string(m[1]))
	}
	slices.Sort(commands)
	if listed := slices.Sorted(maps.Keys(fuzzedReaders)); !slices.Equal(commands, listed) {
		t.Errorf("the tool's commands are %v, listed are %v", commands, listed)
	}
	there := fuzzTargets(t)
	named := make(map[string]bool)
	for command, targets := range fuzzedReaders {
		for _, target := range targets {
			all := []string{target}
			if target == "archive" {
				all = archiveTargets
			}
			for _, target := range all {
				if named[target] = true; !there[target] {
					t.Errorf("%s: there is no fuzz target %s", command, target)
				}
			}
		}
	}
	for target := range there {
		if !named[target] {
			t.Errorf("the fuzz target %s is of no command", target)
		}
	}
}

// fuzzTargets are those of all packages, "folder FuzzName", as scripts/fuzz.sh finds them.
func fuzzTargets(t *testing.T) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "build" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range declaration.FindAllSubmatch(testkit.Read(t, path), -1) {
			all[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")+" "+string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
