// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at a machine, an environment and the installed files, and says whether a job
// started from here would be recorded, and if not, why.
//
// It loads nothing and runs nothing: libraries are read as ELF files, limits and clocks from /proc
// and /sys. What it says of NCCL's search rules follows NCCL's sources (src/plugin/profiler.cc,
// releases 2.23 to 2.31).
package doctor

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// Status says how much a finding matters.
type Status string

// From harmless to fatal for a recording.
const (
	OK   Status = "ok"
	Info Status = "info" // worth knowing, needs no action
	Warn Status = "warn" // a recording works, with less than one would expect
	Fail Status = "fail" // nothing would be recorded
)

func (s Status) weight() int {
	return map[Status]int{OK: 0, Info: 0, Warn: 1, Fail: 2}[s]
}

// Check is one line of the doctor's answer.
type Check struct {
	Group  string `json:"group"` // "installation", "NCCL", "directory", "limits", "clock", "GPUs", "settings"
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`            // what is so, in one line
	Advice string `json:"advice,omitempty"` // what to do; only with Warn and Fail
}

// Report is what the doctor found, in the order of printing.
type Report struct {
	Status Status  `json:"status"` // OK, Warn or Fail: the worst of all checks
	Checks []Check `json:"checks"`
}

func (r *Report) add(group, name string, status Status, found, advice string) {
	r.Checks = append(r.Checks, Check{group, name, status, found, advice})
	r.Status = cmp.Or(r.Status, OK)
	if status.weight() > r.Status.weight() {
		r.Status = status
	}
}

// Options says what to look at. Getenv, Tool and CheckSettings are required.
type Options struct {
	// Getenv answers for the environment that a job would get; "" is the same as unset, as for NCCL.
	Getenv func(string) string
	// Tool is the absolute path of the nccl-otf2 executable; the plugin is looked for from there (package installed).
	Tool string
	// Libraries are NCCL libraries, or folders that hold one, to look at before the usual places.
	Libraries []string
	// root is put before every absolute path of the system (/proc, /sys, /etc, /usr …); "" is the
	// machine itself. Paths from the environment are not changed.
	root string
	// NVML says that the tool was built to use NVML.
	NVML bool
	// CheckSettings reads the settings as the collector would: a one-line summary, warnings, and an
	// error if the collector would refuse them. It also gives the experiment directory.
	CheckSettings func() (s Settings, err error)
}

// Settings is what the doctor needs to know of the tool's settings.
type Settings struct {
	Summary   string   // such as "events gpu (default), no settings file"
	Warnings  []string // values that were not understood, unknown names
	Directory string   // experiment directory a job started here would write to
	Memory    uint64   // cap of ring memory per process in bytes
	Shared    bool     // the memory is to be a file in /dev/shm
	NVML      bool     // sensors of GPUs are to be read
	Network   bool     // requests of network plugins are to be recorded
	Collector string   // path of the collector if set, "spool", or "" for the tool itself
}

type examiner struct {
	*Options
	Report
	settings    Settings
	settingsErr error
	cache       []string // libraries in the loader's cache
}

// Examine makes all checks. It does not fail: what cannot be learned is a finding.
func Examine(o *Options) *Report {
	e := &examiner{Options: o}
	e.cache = loaderCache(e.pathInRoot("/etc/ld.so.cache"))
	e.settings, e.settingsErr = o.CheckSettings()
	exports := e.checkInstallation()
	e.checkPluginVariable()
	e.checkLibraries(exports)
	e.checkDirectory()
	e.checkSharedMemory()
	e.checkLimits()
	e.checkClock()
	e.checkGPUs()
	e.checkSettings()
	return &e.Report
}

func (e *examiner) pathInRoot(p string) string {
	if e.root == "" {
		return p
	}
	return filepath.Join(e.root, p)
}

func (e *examiner) checkSettings() {
	const group = "settings"
	switch {
	case e.settingsErr != nil:
		e.add(group, "values", Fail, e.settingsErr.Error(),
			"correct it: with these settings the collector refuses to record")
	case len(e.settings.Warnings) > 0:
		for _, w := range e.settings.Warnings {
			e.add(group, "values", Warn, w, "correct or remove it")
		}
	default:
		e.add(group, "values", OK, e.settings.Summary, "")
	}
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
