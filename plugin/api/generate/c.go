// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
)

// stateMacro is a state's name in C, where what proxies do needs no prefix.
func stateMacro(s State) string { return Macro(strings.TrimPrefix(s.Name, "Proxy")) }

func types(s *source) {
	s.line("#ifndef NCCLOTF2_API_TYPES_H\n#define NCCLOTF2_API_TYPES_H\n")
	s.line("/* Bit numbers of the activation mask and of a descriptor's type. */\nenum ncclotf2_type {")
	var items []string
	for i, e := range Events {
		items = append(items, fmt.Sprintf("NCCLOTF2_%s = %d,", Macro(e.Name), i))
	}
	s.wrap("  ", items)
	s.line("};\n#define NCCLOTF2_TYPES %du\n", len(Events))
	s.line("/* Types that each version has. */")
	for _, v := range Versions {
		s.line("#define NCCLOTF2_KNOWN_V%d %#xu", v.Number, Known(v.Number))
	}
	s.line("\n/* Types that are parents of others. */")
	var parents []string
	for _, e := range Events {
		if e.Parent {
			parents = append(parents, "1u << NCCLOTF2_"+Macro(e.Name)+" |")
		}
	}
	s.line("enum {\n  NCCLOTF2_PARENTS =")
	parents[len(parents)-1] = strings.TrimSuffix(parents[len(parents)-1], " |")
	s.wrap("    ", parents)
	s.line("};\n")
	s.line("enum ncclotf2_state {")
	items = nil
	for i, state := range States {
		items = append(items, fmt.Sprintf("NCCLOTF2_STATE_%s = %d,", stateMacro(state), i))
	}
	s.wrap("  ", items)
	s.line("};\n#define NCCLOTF2_STATES %d\n\n#define NCCLOTF2_SHM_VERSION %du\n\n#endif", len(States), Layout)
}

// bound is a member at its place in one version.
type bound struct {
	*Member
	Place
}

func membersOf(e *Event, version int) (all []bound) {
	for i := range e.Members {
		if p, ok := e.Members[i].Place(version); ok && !e.Members[i].RCCL {
			all = append(all, bound{&e.Members[i], p})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Offset < all[j].Offset })
	return all
}

// coded reports whether a version has numbers for names of that kind.
func coded(k Kind, version int) bool { return version == 1 && k >= Func }

func versions(s *source) {
	s.line("#ifndef NCCLOTF2_API_VERSIONS_H\n#define NCCLOTF2_API_VERSIONS_H\n\n#include \"abi.h\"")
	for _, v := range Versions {
		s.line("\n/* ---- version %d, from NCCL %s on ---- */", v.Number, v.Release)
		s.line("struct ncclotf2_descr_v%d {\n  uint%d_t type;\n  void *parentObj;\n  int rank;\n  union {", v.Number,
			8*v.Type)
		for i := range Events {
			e := &Events[i]
			members := membersOf(e, v.Number)
			if len(members) == 0 || v.Number < e.Since {
				continue
			}
			var items []string
			for _, m := range members {
				c := m.Kind.CType()
				if coded(m.Kind, v.Number) {
					c = "uint8_t "
				}
				items = append(items, c+m.Place.Name+";")
			}
			s.line("    struct {")
			s.wrap("      ", items)
			s.line("    } %s;", e.Member)
		}
		args := "union ncclotf2_state_args"
		if v.Number <= 3 {
			args += "_v1"
		}
		s.line("  };\n};\nstruct ncclotf2_plugin_v%d {\n  const char *name;", v.Number)
		s.wrap("  ", []string{"ncclotf2_result (*init)(void **context,", v.Init + ");"})
		s.line("  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v%d *eDescr);",
			v.Number)
		s.line("  ncclotf2_result (*stopEvent)(void *eHandle);")
		s.line("  ncclotf2_result (*recordEventState)(void *eHandle, int eState, %s *eStateArgs);", args)
		s.line("  ncclotf2_result (*finalize)(void *context);\n};")
	}
	s.line("\n/* What all are read as: see event.h. */\ntypedef struct ncclotf2_descr_v%d ncclotf2_descr;\n\n#endif",
		Newest().Number)
}

func check(s *source) {
	s.line("/* The compiler holds the declarations to the published sizes and offsets. */\n#include " +
		"\"api_versions.h\"\n#include \"shm.h\"\n")
	s.line("#define SIZE(type, size) _Static_assert(sizeof(type) == (size) && _Alignof(type) == 8, #type)")
	s.line("#define AT(v, m, o, s) \\\n  _Static_assert(offsetof(struct ncclotf2_descr_v##v, m) == (o) && " +
		"sizeof(((struct ncclotf2_descr_v##v *)0)->m) == (s), #m)")
	for _, v := range Versions {
		s.line("\n/* %s */\nSIZE(struct ncclotf2_descr_v%d, %d);\nSIZE(struct ncclotf2_plugin_v%[2]d, 48);", v.Source,
			v.Number, v.Descr)
		items := []string{fmt.Sprintf("AT(%d, type, 0, %d);", v.Number, v.Type),
			fmt.Sprintf("AT(%d, parentObj, 8, 8);", v.Number),
			fmt.Sprintf("AT(%d, rank, 16, 4);", v.Number)}
		for i := range Events {
			if v.Number < Events[i].Since {
				continue
			}
			for _, m := range membersOf(&Events[i], v.Number) {
				size := m.Kind.Size()
				if coded(m.Kind, v.Number) {
					size = 1
				}
				items = append(items, fmt.Sprintf("AT(%d, %s.%s, %d, %d);", v.Number, Events[i].Member,
					m.Place.Name, m.Offset, size))
			}
		}
		s.wrap("", items)
	}
	s.line("\nSIZE(union ncclotf2_state_args_v1, %d);\nSIZE(union ncclotf2_state_args, %d);", Versions[0].Args,
		Newest().Args)
	s.line("_Static_assert(offsetof(union ncclotf2_state_args_v1, proxyOp.steps) == 8, \"steps\");")
	for i := range Events {
		if name, first := RecordName(i); first {
			_, units := Events[i].Record()
			s.line("SIZE(struct ncclotf2_%s, %d);", name, units*Unit)
		}
	}
	s.line("SIZE(struct ncclotf2_net_ib, 40);\nSIZE(struct ncclotf2_net_socket, 24);")
	for _, f := range []struct {
		of, member string
		at         int
	}{
		{"ib", "qp.device", 8}, {"ib", "qp.wr_id", 16}, {"ib", "qp.opcode", 24}, {"ib", "qp.qpNum", 28},
		{"ib", "qp.length", 32},
		{"socket", "sock.fd", 8}, {"socket", "sock.op", 12}, {"socket", "sock.length", 16},
	} {
		s.line("_Static_assert(offsetof(struct ncclotf2_net_%s, %s) == %d, \"%[2]s\");", f.of, f.member, f.at)
	}
}

func records(s *source) {
	s.line("/* Records of kind START, by type: see shm.h. Names are string ids. Types without members are the bare " +
		"head. */")
	s.line("#ifndef NCCLOTF2_API_RECORDS_H\n#define NCCLOTF2_API_RECORDS_H\n")
	for i := range Events {
		name, first := RecordName(i)
		if !first {
			continue
		}
		fields, units := Events[i].Record()
		s.line("struct ncclotf2_%s { /* %s: %d units */\n  struct ncclotf2_record head;", name, Events[i].Doc,
			units)
		end := Unit
		var items []string
		for j, f := range fields {
			if j > 0 && f.CType == fields[j-1].CType {
				items[len(items)-1] = strings.TrimSuffix(items[len(items)-1], ";") + ", " + f.Name + ";"
			} else {
				items = append(items, f.CType+" "+f.Name+";")
			}
			end += f.Size
		}
		s.wrap("  ", append(items, fmt.Sprintf("uint8_t pad[%d];", units*Unit-end)))
		s.line("};")
	}
	s.line("\n#endif")
}

// value is how a field of a record is had from the descriptor d.
func value(e *Event, f Field) string {
	m := f.Member
	if m.Name == "" { // not of the descriptor
		switch m.Go {
		case "Context":
			return "ncclotf2_value(context)"
		case "Rank":
			return "d->rank"
		}
		return m.Before
	}
	v := "d->" + e.Member + "." + m.Name
	switch {
	case m.Kind.Text():
		v = "ncclotf2_intern(ring, " + v + ")"
	case m.Kind == Pointer || m.Kind == ConstPointer || m.Kind == Handle || m.Kind == NetData:
		v = "ncclotf2_value(" + v + ")"
	}
	if since := max(m.Since(), m.Trusted); since > e.Since {
		before := cmp.Or(m.Before, "0")
		v = fmt.Sprintf("version >= %d ? %s : %s", since, v, before)
	}
	return v
}

func fill(s *source) {
	s.line("/* Descriptors as records: see event.h, which includes this and has what is used here. */")
	s.line("#ifndef NCCLOTF2_API_FILL_H\n#define NCCLOTF2_API_FILL_H\n")
	s.line("/* Which chunks a record of a type may go to: when memory runs out, what says least goes first. */")
	s.line("static const uint8_t ncclotf2_class_of[NCCLOTF2_TYPES] = {")
	for _, e := range Events {
		s.line("    [NCCLOTF2_%s] = NCCLOTF2_CLASS_%s,", Macro(e.Name), e.Class)
	}
	s.line("};\n\n/* Records by type: their size in bytes. */\nstatic const uint8_t " +
		"ncclotf2_start_bytes[NCCLOTF2_TYPES] = {")
	for i, e := range Events {
		name, _ := RecordName(i)
		s.line("    [NCCLOTF2_%s] = sizeof(struct ncclotf2_%s),", Macro(e.Name), name)
	}
	s.line("};\n\n/* What a state's argument holds from version 4 on, by the value of the state. */")
	s.line("enum ncclotf2_argument { %s };",
		"NCCLOTF2_ARGUMENT_NONE, NCCLOTF2_ARGUMENT_TRANS_SIZE, NCCLOTF2_ARGUMENT_APPENDED_OPS,\n"+
			"                         NCCLOTF2_ARGUMENT_NET_DATA, NCCLOTF2_ARGUMENT_GPU_TIMER")
	s.line("static const uint8_t ncclotf2_argument_of[NCCLOTF2_STATES] = {")
	for _, state := range States {
		if name := [...]string{"", "TRANS_SIZE", "APPENDED_OPS", "NET_DATA", "GPU_TIMER",
			""}[state.Argument]; name != "" {
			s.line("    [NCCLOTF2_STATE_%s] = NCCLOTF2_ARGUMENT_%s,", stateMacro(state), name)
		}
	}
	s.line(`};

/* Writes the whole record, padding too: chunks are used again and keep their old bytes. The rank is copied only where
 * NCCL sets it; members that the version lacks are not read. */
static inline __attribute__((always_inline)) void ncclotf2_fill(void *at, struct ncclotf2_record head, void *context,
                                                                const ncclotf2_descr *d, unsigned version) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  switch (head.type) {`)
	for i := range Events {
		e := &Events[i]
		name, _ := RecordName(i)
		s.line("    case NCCLOTF2_%s:", Macro(e.Name))
		if name == "record" {
			if i+1 < len(Events) {
				if next, _ := RecordName(i + 1); next == "record" {
					continue
				}
			}
			s.line("      *(struct ncclotf2_record *)at = head;\n      break;")
			continue
		}
		var flags []string
		for _, m := range e.Members {
			if m.Flag == "" {
				continue
			}
			condition := fmt.Sprintf("d->%s.%s", e.Member, m.Name)
			if m.Since() > e.Since {
				condition = fmt.Sprintf("version >= %d && %s", m.Since(), condition)
			}
			flags = append(flags, fmt.Sprintf("%s ? NCCLOTF2_FLAG_%s : 0", condition, m.Flag))
		}
		if e.Unsure > 0 {
			flags = append(flags, fmt.Sprintf("version <= %d ? NCCLOTF2_FLAG_NO_CHANNELS : 0", e.Unsure))
		}
		if len(flags) == 1 {
			s.line("      head.flags = %s;", flags[0])
		} else if len(flags) > 1 {
			s.line("      head.flags = (uint8_t)((%s));", strings.Join(flags, ") | ("))
		}
		s.line("      *(struct ncclotf2_%s *)at = (struct ncclotf2_%[1]s){", name)
		items := []string{".head = head,"}
		fields, _ := e.Record()
		for _, f := range fields {
			if v := value(e, f); v != "" {
				items = append(items, fmt.Sprintf(".%s = %s,", f.Name, v))
			}
		}
		items[len(items)-1] = strings.TrimSuffix(items[len(items)-1], ",") + "};"
		s.wrap("          ", items)
		if e.Hook != "" {
			s.line("      %s(at, d);", e.Hook)
		}
		s.line("      break;")
	}
	s.line("  }\n}\n\n#endif")
}
