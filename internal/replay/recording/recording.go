// SPDX-License-Identifier: Apache-2.0

// Package recording says how the folder of a recording is laid out: what is in it by which name, and what its
// description says. Record mode writes such folders, replaying reads them.
package recording

import "strconv"

// RunFile is the file of a recording's folder that says what it is of.
const RunFile = "run.json"

// CallsSuffix is what the name of a file of callbacks has behind what the process is called.
const CallsSuffix = ".rec.jsonl.gz"

// Calls is the name of the file with the callbacks of process k; beside it may lie Issued, what the application called,
// and Kernels, what ran on the GPU.
func Calls(k int) string { return process(k) + CallsSuffix }

// Issued is the name of the file with what the application of process k called.
func Issued(k int) string { return process(k) + ".issue.jsonl.gz" }

// Kernels is the name of the file with the kernels that process k ran on its GPU.
func Kernels(k int) string { return process(k) + ".kernel.jsonl.gz" }

func process(k int) string { return "p" + strconv.Itoa(k) }

// Run is RunFile. Only the NCCL release must be in it.
type Run struct {
	Name string `json:"name"`
	What string `json:"what"`
	NCCL string `json:"nccl"` // release, "2.29.7"
	// the release is not known, it is one that has the API
	Guessed         bool              `json:"ncclGuessed,omitempty"`
	Library         string            `json:"library,omitempty"` // "rccl", "nccl", or "": not said
	API             int               `json:"pluginApi"`
	SocketProfiling bool              `json:"socketProfilingCompiledIn"`
	Processes       int               `json:"processes"`
	RanksPerProcess int               `json:"ranksPerProcess"`
	Driving         string            `json:"driving"` // how the ranks were driven
	Program         string            `json:"program"` // what was called
	Options         []string          `json:"options"` // of the driver
	Env             map[string]string `json:"env"`     // extra environment
	ExitOK          bool              `json:"exitOk"`
	Calls           map[string]int    `json:"calls"`  // lines by kind, all processes
	Starts          map[string]int    `json:"starts"` // by event type
	States          map[string]int    `json:"states"` // by name
	Files           []File            `json:"files"`
}

// File is one process's file of callbacks.
type File struct {
	File           string `json:"file"`
	PID            int    `json:"pid"`
	Lines          int    `json:"lines"` // 0: not said
	TruncatedLines int    `json:"truncatedLines"`
}
