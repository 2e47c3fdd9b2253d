// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// cFacts asks the C compiler for the values of expressions over plugin/shm.h.
func cFacts(t *testing.T, expressions []string) map[string]string {
	t.Helper()
	cc := need.Program(t, cmp.Or(os.Getenv("CC"), "cc"), "to compare the layout of shm.h")
	testkit.Watch(t, "..")
	header := testkit.Value(filepath.Abs("../shm.h"))(t)
	var source strings.Builder
	fmt.Fprintf(&source, "#include <stdio.h>\n#include <stddef.h>\n#include %q\nint main(void) {\n", header)
	for i, e := range expressions {
		fmt.Fprintf(&source, "  printf(\"%d %%llu\\n\", (unsigned long long)(%s));\n", i, e)
	}
	source.WriteString("  return 0;\n}\n")
	dir := t.TempDir()
	file, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	testkit.Must(t, os.WriteFile(file, []byte(source.String()), 0o666))
	if out, err := exec.Command(cc, "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	out := testkit.Value(exec.Command(program).Output())(t)
	facts := make(map[string]string)
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var i int
		var v string
		testkit.Value(fmt.Sscan(s.Text(), &i, &v))(t)
		facts[expressions[i]] = v
	}
	return facts
}

// cName is a Go field's name in C: PIDStart is pid_start.
func cName(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func TestLayoutMatchesC(t *testing.T) {
	want := map[string]uint64{
		"NCCLOTF2_SHM_MAGIC": Magic, "NCCLOTF2_SHM_VERSION": Version, "NCCLOTF2_PAGE": PageSize,
		"NCCLOTF2_CHUNK_SIZE": ChunkSize, "NCCLOTF2_CHUNK_HEAD": ChunkHead, "NCCLOTF2_RING_MAX": RingMax,
		"NCCLOTF2_COMM_MAX": CommMax, "NCCLOTF2_STRING_SIZE": StringSize, "NCCLOTF2_STRING_MAX": StringMax,
		"NCCLOTF2_KERNEL_NAME_MAX": KernelNameMax,
		"NCCLOTF2_SPARE_MAX":       SpareMax, "NCCLOTF2_UNIT": Unit, "NCCLOTF2_TYPES": TypeCount, "NCCLOTF2_NONE": None,
		"NCCLOTF2_FRAME_MAGIC": FrameMagic, "NCCLOTF2_TAG_SHIFT": TagShift, "NCCLOTF2_TYPE_SHIFT": TypeShift,
		"NCCLOTF2_TYPE_MASK":   TypeMask,
		"NCCLOTF2_CONTEXT_BIT": ContextBit, "NCCLOTF2_NUMBER_MASK": NumberMask, "NCCLOTF2_INTERN_SLOTS": internSlots,
		"NCCLOTF2_CLOCK_MONOTONIC": uint64(ClockMonotonic), "NCCLOTF2_CLOCK_TSC": uint64(ClockTSC),
		"NCCLOTF2_CLOCK_CNTVCT": uint64(ClockCNTVCT), "NCCLOTF2_CLOCK_HOST": uint64(ClockHost),
		"NCCLOTF2_LOSS_MEMORY": uint64(LossMemory), "NCCLOTF2_LOSS_STOP_MEMORY": uint64(LossStopMemory),
		"NCCLOTF2_LOSS_RING": uint64(LossRing), "NCCLOTF2_LOSS_COMM": uint64(LossComm),
		"NCCLOTF2_LOSS_FORK": uint64(LossFork), "NCCLOTF2_LOSS_REASONS": uint64(LossReasons),
		"NCCLOTF2_COLLECTOR_NONE": uint64(CollectorNone), "NCCLOTF2_COLLECTOR_READY": uint64(CollectorReady),
		"NCCLOTF2_COLLECTOR_REFUSED": uint64(CollectorRefused), "NCCLOTF2_COLLECTOR_SPOOL": uint64(CollectorSpool),
		"NCCLOTF2_CHUNK_FREE": chunkFree, "NCCLOTF2_CHUNK_SPARE": chunkSpare, "NCCLOTF2_CHUNK_USED": chunkUsed,
		"NCCLOTF2_RECORD_THREAD": uint64(RecordThread), "NCCLOTF2_RECORD_START": uint64(RecordStart),
		"NCCLOTF2_RECORD_STOP": uint64(RecordStop), "NCCLOTF2_RECORD_STATE": uint64(RecordState),
		"NCCLOTF2_RECORD_INIT": uint64(RecordInit), "NCCLOTF2_RECORD_FINALIZE": uint64(RecordFinalize),
		"NCCLOTF2_RECORD_MARK": uint64(RecordMark), "NCCLOTF2_RECORD_WINDOW_EDGE": uint64(RecordEdge),
		"NCCLOTF2_RECORD_BEFORE": uint64(RecordBefore), "NCCLOTF2_MARK_PHASE_BEGIN": uint64(MarkPhaseBegin),
		"NCCLOTF2_MARK_PHASE_END": uint64(MarkPhaseEnd), "NCCLOTF2_MARK_POINT": uint64(MarkPoint),
		"NCCLOTF2_RECORD_CUPTI": uint64(RecordCupti), "NCCLOTF2_RECORD_CUPTI_CLOCK": uint64(RecordCuptiClock),
		"NCCLOTF2_RECORD_SCOREP_THREAD": uint64(RecordScorepThread), "NCCLOTF2_RECORD_MASK": uint64(RecordMask),
		"NCCLOTF2_CUPTI_OFF": uint64(CuptiOff), "NCCLOTF2_CUPTI_ON": uint64(CuptiOn),
		"NCCLOTF2_CUPTI_NO_LIBRARY": uint64(CuptiNoLibrary), "NCCLOTF2_CUPTI_BUSY": uint64(CuptiBusy),
		"NCCLOTF2_CUPTI_FAILED": uint64(CuptiFailed), "NCCLOTF2_CUPTI_ENDED": uint64(CuptiEnded),
		"NCCLOTF2_SCOREP_OFF": uint64(ScorepOff), "NCCLOTF2_SCOREP_ON": uint64(ScorepOn),
		"NCCLOTF2_SCOREP_ABSENT":   uint64(ScorepAbsent),
		"NCCLOTF2_SCOREP_UNUSABLE": uint64(ScorepUnusable), "NCCLOTF2_SCOREP_NO_CALLS": uint64(ScorepNoCalls),
		"NCCLOTF2_SCOREP_UNKNOWN": uint64(ScorepUnknown), "NCCLOTF2_SCOREP_SINGLE": uint64(ScorepSingle),
		"NCCLOTF2_SCOREP_FORK_JOIN": uint64(ScorepForkJoin), "NCCLOTF2_SCOREP_CREATE_WAIT": uint64(ScorepCreateWait),
		"NCCLOTF2_SCOREP_KEPT_THREAD": ScorepKeptThread, "NCCLOTF2_SCOREP_KEPT_OUTSIDE": ScorepKeptOutside,
		"NCCLOTF2_SCOREP_KEPT_PAUSED": ScorepKeptPaused, "NCCLOTF2_SCOREP_KEPT_UNDEFINED": ScorepKeptUndefined,
		"NCCLOTF2_SCOREP_KEPT_MEMORY":  ScorepKeptMemory,
		"NCCLOTF2_SCOREP_KEPT_REASONS": ScorepKeptReasons,
		"NCCLOTF2_CUPTI_MOST":          ActivityMost,
		"NCCLOTF2_EDGE_INSIDE":         uint64(FlagInside), "NCCLOTF2_EDGE_REPLAY": uint64(FlagReplay),
		"NCCLOTF2_FLAG_NO_CHANNELS": uint64(FlagUnknownChannels), "NCCLOTF2_CAPTURED_BIT": CapturedBit,
		"NCCLOTF2_SILENT_BIT": SilentBit,
		"NCCLOTF2_RECORD_RAW": RecordRaw, "NCCLOTF2_RECORD_WINDOW": RecordInWindow, "NCCLOTF2_RECORD_FULL": RecordFull,
		"NCCLOTF2_RECORD_NET_SUMS": RecordNetSums,
		"NCCLOTF2_LOSS_DISK":       uint64(LossDisk), "NCCLOTF2_COST_PERIOD": CostPeriod,
		"NCCLOTF2_LIBRARY_UNKNOWN": uint64(LibraryUnknown), "NCCLOTF2_LIBRARY_NCCL": uint64(LibraryNCCL),
		"NCCLOTF2_LIBRARY_RCCL": uint64(LibraryRCCL), "NCCLOTF2_MEMORY_MEMFD": uint64(MemoryMemfd),
		"NCCLOTF2_MEMORY_SHM": uint64(MemoryShm), "NCCLOTF2_CALLBACK_START": uint64(CallbackStart),
		"NCCLOTF2_CALLBACK_STOP": uint64(CallbackStop), "NCCLOTF2_CALLBACK_STATE": uint64(CallbackState),
		"NCCLOTF2_CALLBACKS":  uint64(Callbacks),
		"NCCLOTF2_FLAG_GRAPH": uint64(FlagGraph), "NCCLOTF2_FLAG_HAS_ARG": uint64(FlagHasArg),
		"NCCLOTF2_FLAG_SYM": uint64(FlagSym), "NCCLOTF2_FLAG_SEND": uint64(FlagSend),
		"NCCLOTF2_FLAG_COMPLETE": uint64(FlagComplete), "NCCLOTF2_FLAG_KNOWN_NET": uint64(FlagKnownNet),
		"NCCLOTF2_FRAME_HEADER": frameHeaderKind, "NCCLOTF2_FRAME_COMM": frameComm,
		"NCCLOTF2_FRAME_STRINGS": frameStrings,
		"NCCLOTF2_FRAME_RING":    frameRing, "NCCLOTF2_FRAME_CLOCK": frameClock, "NCCLOTF2_FRAME_END": frameEnd,
		"NCCLOTF2_FRAME_FAILED":          frameFailed,
		"sizeof(struct ncclotf2_header)": HeaderSize, "sizeof(struct ncclotf2_ring)": ringSize,
		"sizeof(struct ncclotf2_comm)": commSize, "sizeof(struct ncclotf2_frame)": frameHeadSize,
		"sizeof(struct ncclotf2_chunk)": ChunkHead, "sizeof(struct ncclotf2_record)": Unit,
	}
	for _, m := range []struct {
		c   string
		go_ any
	}{
		{"header", Header{}}, {"clock_tuple", ClockTuple{}}, {"chunk", chunkHeader{}}, {"ring", ringHeader{}},
		{"comm", commEntry{}}, {"frame", frameHeader{}}, {"cost", Cost{}},
	} {
		v := reflect.TypeOf(m.go_)
		want["sizeof(struct ncclotf2_"+m.c+")"] = uint64(v.Size())
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Name == "_" {
				continue
			}
			name := cName(f.Name)
			want[fmt.Sprintf("offsetof(struct ncclotf2_%s, %s)", m.c, name)] = uint64(f.Offset)
			want[fmt.Sprintf("sizeof(((struct ncclotf2_%s *)0)->%s)", m.c, name)] = uint64(f.Type.Size())
		}
	}
	rows := append([]recordLayout{}, others[RecordThread], others[RecordCupti], others[RecordCuptiClock])
	rows = append(rows, starts[:]...)
	widths := map[width]uint64{wide: 8, word: 4, octet: 1, text: 4, inline: 16}
	for _, l := range rows {
		want["sizeof(struct ncclotf2_"+l.name+")"] = uint64(l.units) * Unit
		for _, f := range l.fields {
			want[fmt.Sprintf("offsetof(struct ncclotf2_%s, %s)", l.name, f.name)] = uint64(f.from)
			want[fmt.Sprintf("sizeof(((struct ncclotf2_%s *)0)->%s)", l.name, f.name)] = widths[f.w]
		}
	}
	var expressions []string
	for e := range want {
		expressions = append(expressions, e)
	}
	facts := cFacts(t, expressions)
	testkit.Require(t, len(facts) == len(want), "the compiler answered %d of %d questions", len(facts), len(want))
	for e, w := range want {
		testkit.Check(t, facts[e] == fmt.Sprint(w), "%s: C says %s, Go says %d", e, facts[e], w)
	}
}

// The table's targets must be fields of Record of the width that the decoder writes.
func TestFieldTableFitsRecord(t *testing.T) {
	byOffset := make(map[uintptr]reflect.StructField)
	v := reflect.TypeOf(Record{})
	for i := range v.NumField() {
		byOffset[v.Field(i).Offset] = v.Field(i)
	}
	sizes := map[width]uintptr{wide: 8, word: 4, octet: 1, text: unsafe.Sizeof(""), inline: unsafe.Sizeof("")}
	rows := append([]recordLayout{}, others[:]...)
	for _, l := range append(rows, starts[:]...) {
		seen := make(map[uintptr]bool)
		for _, f := range l.fields {
			target, ok := byOffset[f.to]
			testkit.Check(t, ok && target.Type.Size() == sizes[f.w] &&
				(target.Type.Kind() == reflect.String) == (f.w == text || f.w == inline),
				"%s.%s: writes %d bytes to %s %s", l.name, f.name, sizes[f.w], target.Name, target.Type)
			testkit.Check(t, !seen[f.to], "%s.%s: %s is written twice", l.name, f.name, target.Name)
			seen[f.to] = true
		}
	}
}
