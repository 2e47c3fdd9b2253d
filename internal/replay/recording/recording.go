// SPDX-License-Identifier: Apache-2.0

// Package recording defines the layout of a recording's folder: the names of its files, and the contents of its
// description. Record mode writes such folders; package replay reads them.
package recording

import "strconv"

// RunFile is the name of the description in a recording's folder.
const RunFile = "run.json"

// CallsSuffix ends the names of files of callbacks, after the name of the process.
const CallsSuffix = ".rec.jsonl.gz"

// Calls returns the name of the file with the callbacks of process k. Beside it there may be Issued, the application's
// calls, and Kernels, what ran on the GPU.
func Calls(k int) string { return process(k) + CallsSuffix }

// Issued returns the name of the file with the calls of process k's application.
func Issued(k int) string { return process(k) + ".issue.jsonl.gz" }

// Kernels returns the name of the file with the kernels that process k ran on its GPU.
func Kernels(k int) string { return process(k) + ".kernel.jsonl.gz" }

func process(k int) string { return "p" + strconv.Itoa(k) }

// Run is the contents of RunFile. Only the NCCL release is required.
type Run struct {
	Name string `json:"name"`
	What string `json:"what"`
	NCCL string `json:"nccl"` // release, "2.29.7"
	// Guessed: the release is unknown; NCCL is one that has the API.
	Guessed         bool              `json:"ncclGuessed,omitempty"`
	Library         string            `json:"library,omitempty"` // "rccl", "nccl", or "": unknown
	API             int               `json:"pluginApi"`
	SocketProfiling bool              `json:"socketProfilingCompiledIn"`
	Processes       int               `json:"processes"`
	RanksPerProcess int               `json:"ranksPerProcess"`
	Driving         string            `json:"driving"` // how the ranks were driven
	Program         string            `json:"program"` // what the driver called
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
	Lines          int    `json:"lines"` // 0: unknown
	TruncatedLines int    `json:"truncatedLines"`
}
