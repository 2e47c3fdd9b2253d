// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// toolVersion is the tool's semantic version. CHANGELOG.md has an entry for each version.
const toolVersion = "0.1.0"

// commit is the commit the tool was built from; the Makefile sets it.
var commit = "unknown"

// versions is the JSON form of `nccl-otf2 version`.
type versions struct {
	Version     string   `json:"version"`
	Commit      string   `json:"commit"`
	OTF2        string   `json:"otf2"`        // version of the archive format written
	ProfilerAPI []string `json:"profilerApi"` // NCCL profiler APIs that the plugin offers
	NVML        bool     `json:"nvml"`        // built to identify and measure GPUs
	Go          string   `json:"go"`
	Platform    string   `json:"platform"`
}

func versionCommand() *cobra.Command {
	var f choice
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the tool, the archive format and the plugin interface",
		Example: `  nccl-otf2 version
  nccl-otf2 version --format json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{
				Version: toolVersion, Commit: commit, OTF2: archiveFormat, ProfilerAPI: pluginVersions(),
				NVML: gpu.Built,
				Go:   runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			out := cmd.OutOrStdout()
			if f.isJSON() {
				return writeJSON(out, v)
			}
			printable.Fprintln(out, versionLine())
			printable.Fprintf(out, "archive format: OTF2 %s\n", v.OTF2)
			printable.Fprintf(out, "NCCL profiler API: %s\n",
				cmp.Or(strings.Join(v.ProfilerAPI, ", "), "none: there is no plugin"))
			printable.Fprintf(out, "GPUs through NVML: %s\n",
				map[bool]string{true: "yes", false: "no: built without cgo"}[v.NVML])
			printable.Fprintf(out, "built with %s for %s\n", v.Go, v.Platform)
			return nil
		},
	}
	addFormat(cmd, &f)
	return cmd
}

// archiveFormat is the version of the OTF2 format that archives have.
const archiveFormat = "3.0"

// versionLine returns the first line of `version`, which is also the output of --version.
func versionLine() string { return fmt.Sprintf("nccl-otf2 %s (commit %s)", toolVersion, commit) }

func pluginVersions() []string {
	var out []string
	if tool, err := installed.Tool(); err == nil {
		for _, n := range doctor.PluginVersions(tool) {
			out = append(out, fmt.Sprintf("v%d", n))
		}
	}
	return out
}
