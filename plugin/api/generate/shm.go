// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// shmHeader declares the shared memory of plugin and collector in C, shmMirror in Go.
const (
	shmHeader = "plugin/shm.h"
	shmMirror = "plugin/shm/zz_layout.go"
)

// shmConstants are the macros of shm.h that Go has, and their names there.
var shmConstants = [][2]string{
	{"SHM_MAGIC", "Magic"}, {"PAGE", "PageSize"}, {"CHUNK_SIZE", "ChunkSize"}, {"CHUNK_HEAD", "ChunkHead"},
	{"RING_MAX", "RingMax"}, {"COMM_MAX", "CommMax"}, {"STRING_SIZE", "StringSize"}, {"STRING_MAX", "StringMax"},
	{"KERNEL_NAME_MAX", "KernelNameMax"}, {"CUPTI_MOST", "ActivityMost"}, {"SPARE_MAX", "SpareMax"}, {"UNIT", "Unit"},
	{"REASON_SIZE", "reasonSize"}, {"NONE", "None"}, {"FRAME_MAGIC", "FrameMagic"}, {"TAG_SHIFT", "TagShift"},
	{"TYPE_SHIFT", "TypeShift"}, {"TYPE_MASK", "TypeMask"}, {"CONTEXT_BIT", "ContextBit"},
	{"CAPTURED_BIT", "CapturedBit"}, {"SILENT_BIT", "SilentBit"}, {"NUMBER_MASK", "NumberMask"},
	{"COST_PERIOD", "CostPeriod"}, {"INTERN_SLOTS", "internSlots"}, {"RECORD_RAW", "RecordRaw"},
	{"RECORD_WINDOW", "RecordInWindow"}, {"RECORD_FULL", "RecordFull"}, {"RECORD_NET_SUMS", "RecordNetSums"},
}

// shmEnums are the enumerations of shm.h that Go has: the type of the values, "" for plain numbers, and what their
// names begin with in both languages.
var shmEnums = []struct{ name, goType, prefix, goPrefix string }{
	{"clock_source", "ClockSource", "CLOCK_", "Clock"},
	{"loss", "LossReason", "LOSS_", "Loss"},
	{"library", "Library", "LIBRARY_", "Library"},
	{"memory_kind", "MemoryKind", "MEMORY_", "Memory"},
	{"callback", "Callback", "CALLBACK_", "Callback"},
	{"collector_state", "CollectorState", "COLLECTOR_", "Collector"},
	{"cupti_state", "CuptiState", "CUPTI_", "Cupti"},
	{"scorep_state", "ScorepState", "SCOREP_", "Scorep"},
	{"scorep_model", "ScorepModel", "SCOREP_", "Scorep"},
	{"scorep_kept", "", "SCOREP_KEPT_", "ScorepKept"},
	{"withheld_why", "WithheldWhy", "WITHHELD_", "Withheld"},
	{"chunk_state", "", "CHUNK_", "chunk"},
	{"record_kind", "RecordKind", "RECORD_", "Record"},
	{"mark", "Mark", "MARK_", "Mark"},
	{"record_flags", "RecordFlags", "FLAG_", "Flag"},
	{"edge_flags", "RecordFlags", "EDGE_", "Flag"},
	{"frame_kind", "", "FRAME_", "frame"},
}

// shmStructs are the structs of shm.h that Go has, and what they are.
var shmStructs = []struct{ name, goName, doc string }{
	{"clock_tuple", "ClockTuple", "is one instant on four clocks"},
	{"cost", "Cost", "is what a callback took in the process's threads: every CostPeriod-th event is measured"},
	{"header", "Header", "is the head of the memory. In live memory, the fields from RingUsed on change while they\n" +
		"// are looked at: read them through the methods of Memory, or from the copy that Source.Header returns"},
	{"chunk", "chunkHeader", "is the head of a chunk"},
	{"ring", "ringHeader", "is a ring"},
	{"comm", "commEntry", "is the entry of a communicator"},
	{"frame", "frameHeader", "is the head of a frame of a spool file"},
}

// goWords are words of C's names whose spelling in Go is not that of others.
var goWords = map[string]string{"pid": "PID", "uid": "UID", "tid": "TID", "id": "ID", "api": "API", "uuid": "UUID",
	"pci": "PCI", "tsc": "TSC", "cntvct": "CNTVCT", "nccl": "NCCL", "rccl": "RCCL"}

// goNames are names in Go that do not follow from those in C.
var goNames = map[string]string{"FLAG_NO_CHANNELS": "FlagUnknownChannels", "RECORD_WINDOW_EDGE": "RecordEdge",
	"CALLBACKS": "Callbacks", "FRAME_HEADER": "frameHeaderKind"}

// camel is a name of C's in Go's spelling: boot_id is BootID.
func camel(name string) string {
	var all string
	for word := range strings.SplitSeq(strings.ToLower(name), "_") {
		switch spelling := goWords[word]; {
		case spelling != "":
			all += spelling
		case word != "":
			all += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return all
}

var (
	ownLines  = regexp.MustCompile(`(?ms)^\s*/\*.*?\*/$`)
	macro     = regexp.MustCompile(`(?m)^#define NCCLOTF2_(\w+)\s+([^/\n]+?)\s*(?:/\*(.*?)\*/)?$`)
	enumValue = regexp.MustCompile(`(?s)NCCLOTF2_(\w+) = (\d+),?[ \t]*(?:/\*(.*?)\*/)?`)
	member    = regexp.MustCompile(`(?s)((?:struct )?\w+) ([^;]+);[ \t]*(?:/\*(.*?)\*/)?`)
	inner     = regexp.MustCompile(`struct \{([^}]*)\} (\w+)(\[\w+\]);`)
	constant  = regexp.MustCompile(`NCCLOTF2_(\w+)`)
	number    = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)(?:u|ull|ULL)\b`)
)

// layouts makes Go's mirror of shm.h.
func layouts(s *source) {
	text := s.read(shmHeader)
	named := make(map[string]string)
	for _, c := range shmConstants {
		named[c[0]] = c[1]
	}
	named["TYPES"], named["SHM_VERSION"] = "TypeCount", "Version"
	// goText is an expression of C's in Go.
	goText := func(c string) string {
		c = number.ReplaceAllString(c, "$1")
		return constant.ReplaceAllStringFunc(c, func(name string) string {
			if known := named[strings.TrimPrefix(name, "NCCLOTF2_")]; known != "" {
				return known
			}
			return name
		})
	}
	s.line("\npackage shm\n\n// Constants of %s.\nconst (", shmHeader)
	macros := make(map[string][]string)
	for _, m := range macro.FindAllStringSubmatch(text, -1) {
		macros[m[1]] = m
	}
	for _, c := range shmConstants {
		m := macros[c[0]]
		if m == nil {
			panic(fmt.Sprintf("%s has no macro NCCLOTF2_%s", shmHeader, c[0]))
		}
		s.line("%s = %s%s", c[1], strings.Trim(goText(m[2]), "()"), goComment(m[3]))
	}
	s.line(")")
	for _, e := range shmEnums {
		s.line("\n// Values of enum ncclotf2_%s.\nconst (", e.name)
		for _, m := range enumValue.FindAllStringSubmatch(body(text, "enum", e.name), -1) {
			goType := e.goType
			name := goNames[m[1]]
			if name == "" {
				name = e.goPrefix + camel(strings.TrimPrefix(m[1], e.prefix))
			}
			if strings.HasSuffix(name, "Reasons") || name == "Callbacks" { // not one of them, but how many there are
				goType = ""
			}
			named[m[1]] = name
			s.line("%s %s = %s%s", name, goType, m[2], goComment(m[3]))
		}
		s.line(")")
	}
	for _, c := range shmStructs {
		s.line("\n// %s %s.\ntype %[1]s struct {", c.goName, c.doc)
		text := body(text, "struct", c.name)
		if in := inner.FindStringSubmatchIndex(text); in != nil {
			goMembers(s, text[:in[0]], goText)
			s.line("%s %s struct {", camel(text[in[4]:in[5]]), goText(text[in[6]:in[7]]))
			goMembers(s, text[in[2]:in[3]], goText)
			s.line("}")
			text = text[in[1]:]
		}
		goMembers(s, text, goText)
		s.line("}")
	}
}

// body is what stands between the braces of a declaration, without the comments that have their own lines.
func body(text, keyword, name string) string {
	_, rest, found := strings.Cut(text, fmt.Sprintf("%s ncclotf2_%s {", keyword, name))
	text, _, ended := strings.Cut(rest, "\n};")
	if !ended || strings.Contains(strings.SplitN(rest, "\n", 2)[0], "};") {
		text, _, ended = strings.Cut(rest, "};")
	}
	if !found || !ended {
		panic(fmt.Sprintf("%s has no %s ncclotf2_%s", shmHeader, keyword, name))
	}
	return ownLines.ReplaceAllString(text, "")
}

// goMembers makes the fields of a struct of the declarations of its members.
func goMembers(s *source, text string, goText func(string) string) {
	for _, m := range member.FindAllStringSubmatch(text, -1) {
		goType := strings.TrimSuffix(m[1], "_t")
		for _, e := range shmEnums {
			if e.goType != "" && strings.Contains(m[3], "enum ncclotf2_"+e.name) {
				goType = e.goType
			}
		}
		for _, c := range shmStructs {
			if m[1] == "struct ncclotf2_"+c.name {
				goType = c.goName
			}
		}
		if goType == "char" {
			goType = "byte"
		}
		for name := range strings.SplitSeq(m[2], ", ") {
			name, size, isArray := strings.Cut(name, "[")
			if isArray {
				size = "[" + goText(size)
			}
			if name = camel(name); strings.HasPrefix(name, "Pad") {
				name = "_"
			}
			s.line("%s %s%s%s", name, size, goType, goComment(m[3]))
		}
	}
}

// goComment is a comment of C's behind a line in Go.
func goComment(text string) string {
	if text == "" {
		return ""
	}
	return " // " + strings.Join(strings.Fields(text), " ")
}
