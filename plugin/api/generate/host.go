// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// hostKind is a member's kind in the replay host.
func hostKind(k Kind) string {
	switch k {
	case Bool:
		return "BOOL"
	case U8:
		return "U8"
	case I32, PID:
		return "I32"
	case U32:
		return "U32"
	case I64:
		return "I64"
	case Pointer, ConstPointer:
		return "POINTER"
	case Handle:
		return "HANDLE"
	case NetData:
		return "NET_DATA"
	case String:
		return "STRING"
	case Func:
		return "FUNC"
	case Datatype:
		return "DATATYPE"
	case Algo:
		return "ALGO"
	case Proto:
		return "PROTO"
	}
	return "U64"
}

// hostTypes makes the constants of the replay host: types, and the places of members in the order of their types.
func hostTypes(s *source) {
	s.line("#ifndef REPLAY_HOST_API_H\n#define REPLAY_HOST_API_H\n")
	s.line("/* Event types are bits of the activation mask; these are their numbers. The last two are no bit " +
		"numbers: RCCL's own type\n" +
		" * has the bit of NCCL's KernelPhase in version 6, and descriptors may carry anything that neither library " +
		"defines. */\nenum event_type {")
	var items []string
	for _, e := range Events {
		items = append(items, "TYPE_"+Macro(e.Name)+",")
	}
	s.wrap("  ", append(items, "TYPE_PROXY_DIAG,", "TYPE_OTHER,", "TYPE_COUNT"))
	most := 0
	s.line("};\n\n/* The members of descriptors, in the order in which programs have them. */")
	for _, e := range Events {
		items = nil
		for _, m := range e.Members {
			if m.Name != "" {
				items = append(items, Macro(e.Name)+"_"+m.Name+",")
			}
		}
		if most = max(most, len(items)); len(items) > 0 {
			s.line("enum {")
			s.wrap("  ", items)
			s.line("};")
		}
	}
	s.line("enum { OTHER_type }; /* not a member: what the descriptor's type is to be */\n")
	s.line("#define FIELD_MAX %d\n#define VERSION_COUNT %d\n#define STATE_COUNT %d /* states run from 0 to the one "+
		"before; others are counted as this */",
		most+1, len(Versions), len(States))
	s.line("\n#endif")
}

func bits(names []string) string {
	var mask uint32
	for _, n := range names {
		mask |= 1 << Number(n)
	}
	return fmt.Sprintf("%#x", mask)
}

// hostTables makes the tables of the replay host.
func hostTables(s *source) {
	s.line("#include \"layouts.h\"\n\nconst struct event_info event_info[TYPE_COUNT] = {")
	for _, e := range Events {
		items := []string{fmt.Sprintf(".name = \"%s\", .implied_by = %s,", e.Name, bits(e.Start))}
		for _, flag := range []struct {
			name string
			set  bool
		}{
			{"needs_parent", e.NeedsParent}, {"needed_parent", e.NeededParent}, {"called_on_null", e.NullCalls},
			{"stale_slot", e.StaleSlot},
		} {
			if flag.set {
				items = append(items, "."+flag.name+" = true,")
			}
		}
		s.line("  [TYPE_%s] = {", Macro(e.Name))
		s.wrap("    ", items)
		items = []string{".fields = {"}
		for _, m := range e.Members {
			if m.Name != "" {
				items = append(items, fmt.Sprintf("{ \"%s\", FIELD_%s },", m.Name, hostKind(m.Kind)))
			}
		}
		if len(items) > 1 {
			s.wrap("    ", append(items, "{ NULL, FIELD_NONE } }"))
		}
		s.line("  },")
	}
	s.line("  [TYPE_PROXY_DIAG] = { .name = \"ProxyDiag\", .implied_by = PROXY_DIAG_BIT },")
	s.line("  [TYPE_OTHER] = { .name = \"?\", .fields = { { \"type\", FIELD_U64 } } },\n};\n\nconst char *const " +
		"state_names[STATE_COUNT + 1] = {")
	var items []string
	for _, state := range States {
		items = append(items, fmt.Sprintf("%q,", state.Name))
	}
	s.wrap("  ", append(items, `"?",`))
	s.line("};\n\nconst struct layout layouts[VERSION_COUNT] = {")
	for i := len(Versions) - 1; i >= 0; i-- {
		hostLayout(s, Versions[i], false)
		s.line(",")
	}
	s.line("};\n\nconst struct layout layout_rccl_v6 =")
	hostLayout(s, Versions[5], true)
	s.line(";")
}

func hostLayout(s *source, v Version, rccl bool) {
	last, args, types := 0, v.Args, fmt.Sprintf("%#x", Known(v.Number))
	for i, state := range States {
		if state.Since <= v.Number {
			last = i
		}
	}
	if rccl {
		last, args, types = 31, 24, types+" | TYPE_BIT(PROXY_DIAG)"
	}
	init := "INIT_V5"
	switch {
	case strings.Contains(v.Init, "commHash"):
		init = "INIT_V4"
	case !strings.Contains(v.Init, "commId"):
		init = "INIT_V1"
	}
	s.line("  { %d, %d, \"ncclProfiler_v%[1]d\", %[3]d, %d, %d, %s, %s, %d, %t, {", v.Number, v.Minor(), v.Descr, args,
		v.Type, init, types, last, v.Number == 1)
	for _, e := range Events {
		var items []string
		for _, m := range e.Members {
			if p, ok := m.Place(v.Number); ok && v.Number >= e.Since {
				items = append(items, fmt.Sprintf("[%s_%s] = %d,", Macro(e.Name), m.Name, p.Offset))
			} else if m.RCCL && rccl {
				items = append(items, fmt.Sprintf("[%s_%s] = %d,", Macro(e.Name), m.Name, m.At[0].Offset))
			}
		}
		if len(items) > 0 {
			items[len(items)-1] = strings.TrimSuffix(items[len(items)-1], ",") + " },"
			s.wrap("    ", append([]string{fmt.Sprintf("[TYPE_%s] = {", Macro(e.Name))}, items...))
		}
	}
	s.Truncate(s.Len() - 1)
	s.line(" } }")
	s.Truncate(s.Len() - 1)
}
