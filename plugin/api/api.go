// SPDX-License-Identifier: Apache-2.0

// Package api says of NCCL's profiler API what programs need: its versions, the event types with the members of their
// descriptors, the presets, and the states. Its tables (zz_table.go) are generated, as all else that restates the API,
// from plugin/api/generate/table.go (`make generate`). docs/adding-an-event.md says how to add to it,
// docs/nccl-profiler-api.md what it all means.
//
// Nothing here changes after a program's start, so all may read it at a time.
package api

import "fmt"

// Version is one version of the API.
type Version struct {
	Number  int
	Release string // of NCCL, the first that has it
	Minor   int    // the release's second number: NCCL's first is 2
}

// Kind is what a descriptor's member is.
type Kind uint8

// Text reports whether members of this kind are names.
func (k Kind) Text() bool { return k >= String }

// Member is a member of an event's descriptor, or of its record alone.
type Member struct {
	Name string // "": it is in the record alone
	Kind Kind
	Go   string // the field of the record that has it, by its name in shm.Record; "": it is not recorded, or as a flag
	Flag string // the flag of the record that is set if it is not 0: its name in enum ncclotf2_record_flags

	Since, Until int  // the versions that have it; Until 0: all from Since on
	Inferred     bool // records of versions before Since have it all the same
	Trusted      int  // the first version from which on it can be believed; 0: all that have it
}

// Delivered reports whether records of an API version know the member.
func (m *Member) Delivered(version int) bool {
	return (version >= m.Since || m.Inferred) && (m.Until == 0 || version <= m.Until)
}

// Event is an event type. Its number is its place in Events.
type Event struct {
	Name    string // without ncclProfile
	Ranked  bool   // the descriptor's rank is set
	Depth   int    // of nesting: at one time, less begins first and ends last
	Since   int    // the first version that has it
	Unsure  int    // the number of channels is not told up to this version
	Members []Member
}

// Always reports whether all versions that have the event have the member.
func (e *Event) Always(m *Member) bool { return m.Since <= e.Since && m.Until == 0 }

// Argument is what a state's argument holds.
type Argument uint8

// String is the argument's name in NCCL's union; OpProgress has steps, too.
func (a Argument) String() string {
	return [...]string{"", "transSize", "appendedProxyOps", "data", "pTimer", "transSize"}[a]
}

// State is a state of recordEventState. Its number is its place in States.
type State struct {
	Name     string // without ncclProfiler and its version
	Argument Argument
}

// Newest is the newest version.
func Newest() Version { return Versions[len(Versions)-1] }

// Known are the event types (bits) of a version: of older ones than the first none, of newer ones than the newest its.
func Known(version int) (mask uint32) {
	for i, e := range Events {
		if version >= e.Since {
			mask |= 1 << i
		}
	}
	return mask
}

// Preset are the event types (bits) of a preset.
func Preset(name string) uint32 { return presetMasks[name] }

// NetSums names what is recorded as with the preset net, with the network's steps summed up by operation instead of one
// by one. It is no preset of events of its own; in masks of what is to be recorded, NetSumsBit, which is no event's,
// stands for it.
const (
	NetSums    = "net-sums"
	NetSumsBit = 1 << 31
)

// StateArgument is what the argument of a state's number holds.
func StateArgument(state uint32) Argument {
	if state < uint32(len(States)) {
		return States[state].Argument
	}
	return None
}

// StateName names a state's number.
func StateName(state uint32) string {
	if state < uint32(len(States)) {
		return States[state].Name
	}
	return fmt.Sprintf("State(%d)", state)
}
