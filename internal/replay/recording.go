// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// Recording is one recorded run.
type Recording struct {
	Name      string // name of the folder
	Dir       string
	Run       recording.Run
	Processes []*Process // by rank
}

// Process is one recorded process.
type Process struct {
	Index    int // in Recording.Processes
	PID      int
	Opens    []Open
	Threads  []*Thread  // in the order of their first call
	Contexts []*Context // in the order of init
	Events   []*Event   // in the order of start; Events[i].Index is i+1
	Calls    []*Call    // in recorded order; Calls[i].Index is i
	Issues   []Issue    // what the application called
	Kernels  []Kernel   // what the simulated GPU ran
}

// Open describes one loading of the plugin, with the same instant on three clocks, in ns.
type Open struct {
	PID, API, Mask int
	T              uint64 // CLOCK_MONOTONIC_RAW
	Mono           uint64 // CLOCK_MONOTONIC
	Real           uint64 // CLOCK_REALTIME
	Host           string // name of the machine, "" if unknown
	Boot           string // boot id of the machine, "" if unknown: processes with the same one share their clocks
}

// Thread is one thread that made calls.
type Thread struct {
	Index int // in Process.Threads
	TID   int
	Name  string // at its first call; a progress thread may still have its parent's name
	Short bool   // created when its first call is due: a thread that exists only for these calls
	Calls []*Call
}

// Context is one communicator rank, from init to finalize.
type Context struct {
	Index          int // from 1, in Process.Contexts
	Open           int // index in Process.Opens
	ID             int // recorded id, from 1 in each Open
	Pointer        descriptor.Pointer
	CommID         uint64
	CommName       *string // nil: NULL
	NNodes, NRanks int
	Rank           int // in the communicator
	MaskBefore     int // activation mask on entry of init
	Mask           int // … that the recorder requested
	Init           *Call
	Finalize       *Call  // the first call of finalize; nil if there is none
	Publish        *int   // number under which other processes refer to it, nil if none
	Device         *int   // CUDA ordinal, nil if unknown
	UUID, PCI      string // of the GPU, "" if unknown
}

// Name returns the communicator's name, "" if NCCL gave none.
func (c *Context) Name() string {
	if c.CommName == nil {
		return ""
	}
	return *c.CommName
}

// CallKind identifies a callback of the plugin interface.
type CallKind uint8

// The callbacks.
const (
	CallInit CallKind = iota
	CallStart
	CallStop
	CallState
	CallFinalize
)

// String returns the callback's name.
func (k CallKind) String() string {
	return [...]string{"init", "start", "stop", "state", "finalize"}[k]
}

// Call is one callback.
type Call struct {
	Index   int // in Process.Calls
	Kind    CallKind
	Open    int    // index in Process.Opens
	Seq     int    // line number in its Open
	T       uint64 // CLOCK_MONOTONIC_RAW at entry, ns
	Thread  *Thread
	Context *Context           // of stops and states: the event's; nil for NULL handles and foreign contexts
	Event   *Event             // nil for init and finalize, and for stops and states with an invalid handle
	Handle  descriptor.Pointer // of stops and states: as recorded
	// Foreign is the number under which another process published the handle (stop, state) or the context (finalize),
	// nil if none did.
	Foreign        *int
	ContextPointer descriptor.Pointer // of finalize: as recorded
	State          descriptor.State   // CallState
	Args           *Args              // of CallState: nil for NULL
	Again          int                // of CallStop: how often the event had been stopped before
}

// Args has the arguments of a state; members that the state does not define are nil.
type Args struct {
	// TransSize is in bytes, for ProxyStep; only in SendWait and RecvFlushWait it is the size of this step.
	TransSize        *uint64 `json:"transSize,omitempty"`
	Steps            *int    `json:"steps,omitempty"`            // ProxyOp up to NCCL 2.26, with TransSize
	AppendedProxyOps *int64  `json:"appendedProxyOps,omitempty"` // ProxyCtrl
	PTimer           *uint64 `json:"pTimer,omitempty"`           // KernelChStop, KernelPhaseStop: GPU clock
	// Data is for NetPluginUpdate. It must not be read unless Sock or IB is set.
	Data *descriptor.Pointer `json:"data,omitempty"`
	Sock *descriptor.Sock    `json:"sock,omitempty"`
	IB   *descriptor.IB      `json:"ib,omitempty"`
	Diag *Diag               `json:"proxyDiag,omitempty"` // RCCL's version 6
}

// Diag has the arguments of RCCL's ProxyDiagUpdate.
type Diag struct {
	CounterKind uint8  `json:"counterKind"`
	Flags       uint16 `json:"flags"`
	Value       int64  `json:"value"`
	Value2      int64  `json:"value2"`
}

// Event is one event, from its start on.
type Event struct {
	Index          int // from 1, in Process.Events
	Open           int // index in Process.Opens
	ID             int // recorded, from 1 in each Open
	Type           descriptor.Type
	TypeBits       uint64             // the descriptor's type
	Handle         descriptor.Pointer // as the recorder gave it
	Context        *Context           // nil if the context is not one of this process's
	ContextPointer descriptor.Pointer
	Parent         *Event             // nil if NULL, or not an event of this process
	ParentObj      descriptor.Pointer // as recorded
	ParentStopped  int                // how often the parent had been stopped at the start
	Group          *Event             // Coll and P2p: the event behind parentGroup
	Rank           int                // as in the descriptor: 0 if NCCL does not fill it in
	Before         descriptor.Pointer // what *eHandle held on entry
	BeforeEvent    *Event             // the earlier event with the handle Before
	Descr          any                // *descriptor.Coll, … : a pointer to the type named like Type
	Start          *Call
	Stop           *Call // the first stop; nil if there is none
	States         []*Call
	// Numbers under which handles and contexts pass between the processes of a run, nil if they do not: the context,
	// parent, or (for a ProxyOp) pid is replaced by what another process published under the number.
	Publish, ForeignContext, ForeignParent, ForeignPID *int

	values []json.RawMessage // Descr in the order of the type's fields, for Compile; nil: not recorded
	sock   json.RawMessage
}

// Root returns the GroupApi event in whose call the event's operation was issued, nil for events outside of any
// (ProxyCtrl). The activation mask that NCCL read there applies to the whole operation.
func (e *Event) Root() *Event { return e.above(descriptor.TypeGroupApi) }

// above returns the nearest event of a type among an event and its parents, nil if there is none.
func (e *Event) above(t descriptor.Type) *Event {
	for ; e != nil && e.Type != t; e = e.Parent {
	}
	return e
}

// Issue is one call of the application, from the reference file.
type Issue struct {
	T0, T1    uint64 // CLOCK_MONOTONIC_RAW around the call, ns
	WorldRank int
	Comm      int // the driver's number of the communicator
	CommRank  int
	NRanks    int
	Stream    int
	Op        string // program word
	Count     uint64
	Args      []string `json:"a"` // of the program word
	Done      uint64   // time by which all of it had ended, on the same clock; 0: unknown
	EventNs   uint64   // time between CUDA events around it on its stream; 0: not measured
}

// Kernel is one batch and channel that the simulated GPU ran, from the reference file.
type Kernel struct {
	Dev          int
	CommRank     int
	NRanks       int
	Channel      int
	Func         string
	Works        int
	FirstCounter uint64
	T0, T1       uint64 // CLOCK_MONOTONIC_RAW, ns
	Aborted      descriptor.Flag
	// PTimers has the timestamps given to NCCL for each work (start, stop; GPU clock), nil if NCCL had not requested
	// them.
	PTimers []*[2]uint64 `json:"pTimers"`
}

// maxRun limits the size of a run.json: a few hundred bytes for each process.
const maxRun = 64 << 20

// Load reads the recording in a folder. Errors name the file and the line.
func Load(dir string) (*Recording, error) {
	rec := &Recording{Name: filepath.Base(filepath.Clean(dir)), Dir: dir}
	path := filepath.Join(dir, recording.RunFile)
	text, err := regular.Read(path, maxRun)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	if err := json.Unmarshal(text, &rec.Run); err != nil {
		return nil, fmt.Errorf("recording: %s: %w", path, err)
	}
	if err := rec.completeRun(path); err != nil {
		return nil, err
	}
	for i, f := range rec.Run.Files {
		path := filepath.Join(dir, filepath.Base(f.File))
		p, lines, err := loadProcess(path)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		if f.Lines != 0 && lines != f.Lines {
			return nil, fmt.Errorf("recording: %s: %d lines where run.json says %d", path, lines, f.Lines)
		}
		p.Index = i
		if err := loadReferences(p, dir, i); err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		rec.Processes = append(rec.Processes, p)
	}
	return rec, nil
}

// completeRun completes run.json from the files in the folder.
func (rec *Recording) completeRun(path string) error {
	run := &rec.Run
	if run.Files == nil {
		for k := 0; ; k++ {
			name := recording.Calls(k)
			if _, err := os.Stat(filepath.Join(rec.Dir, name)); err != nil {
				break
			}
			run.Files = append(run.Files, recording.File{File: name})
		}
	}
	if run.Processes == 0 {
		run.Processes = len(run.Files)
	}
	if len(run.Files) == 0 || len(run.Files) != run.Processes {
		return fmt.Errorf("recording: %s: %d files for %d processes", path, len(run.Files), run.Processes)
	}
	run.RanksPerProcess = max(run.RanksPerProcess, 1)
	return nil
}

// recordingFolders has the recordings in a checkout, and installedRecordings those of an installation.
var recordingFolders = []string{"testdata/nccl-callbacks", "testdata/nccl-causes"}

const installedRecordings = "share/nccl-otf2/recordings"

// Find returns the folder of a recording: name itself if it is one, otherwise a recording of that name in the checkout
// (testdata/nccl-callbacks, testdata/nccl-causes) that contains the working directory or this program, or in the
// installation of this program. The error lists the available names.
func Find(name string) (string, error) {
	if isRecording(name) {
		return name, nil
	}
	var known []string
	for _, folder := range namedRecordings() {
		if filepath.Base(folder) == name {
			return folder, nil
		}
		known = append(known, filepath.Base(folder))
	}
	if len(known) == 0 {
		return "", fmt.Errorf("recording: %s: no such recording: give a folder with %s", name, recording.RunFile)
	}
	slices.Sort(known)
	return "", fmt.Errorf("recording: %s: no such recording: give a folder with %s, or one of %s", name,
		recording.RunFile, strings.Join(slices.Compact(known), ", "))
}

// namedRecordings returns the folders of all recordings that can be found by name. Of several with one name, the first
// takes precedence.
func namedRecordings() (found []string) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	tool, err := installed.Tool()
	if err == nil {
		starts = append(starts, filepath.Dir(tool))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			for _, folder := range recordingFolders {
				found = append(found, recordingsIn(filepath.Join(dir, folder))...)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if err == nil {
		for _, root := range installed.Roots(tool) {
			found = append(found, recordingsIn(filepath.Join(root, installedRecordings))...)
		}
	}
	return found
}

func recordingsIn(folder string) (found []string) {
	for _, file := range regular.Matches(folder, "*/"+recording.RunFile) {
		found = append(found, filepath.Dir(file))
	}
	return found
}

func isRecording(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, recording.RunFile))
	return err == nil && st.Mode().IsRegular()
}
