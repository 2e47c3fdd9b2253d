// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func eventPage(s *source) {
	s.line("| bit | value | ncclProfile… | since | what it is |\n|---:|---:|---|---|---|")
	for i, e := range Events {
		s.line("| %d | %d | %s | v%d | %s |", i, 1<<i, e.Name, e.Since, e.Doc)
	}
}

func statePage(s *source) {
	s.line("| value | ncclProfiler… | since | argument | |\n|---:|---|---|---|---|")
	for i, state := range States {
		argument := [...]string{"–", "`transSize`", "`appendedProxyOps`", "`netPlugin.data`", "`pTimer`",
			"`transSize`, `steps`"}[state.Argument]
		s.line("| %d | %s | v%d | %s | %s |", i, state.Name, state.Since, argument, state.Doc)
	}
}

func impliedPage(s *source) {
	s.line("| event | started if one of these is set |\n|---|---|")
	for _, e := range Events {
		types := slices.Clone(e.Start)
		slices.SortFunc(types, func(a, b string) int { return Number(a) - Number(b) })
		text := strings.Join(types, ", ")
		if len(types) > 12 {
			text = "any of the types up to CeBatch, except ProxyCtrl"
		}
		s.line("| %s | %s |", e.Name, text)
	}
}

func layoutPage(s *source) {
	heads, rule := "| version | NCCL |", "|---|---|"
	for _, h := range []string{"descriptor", "`type`", "arguments of a state", "header"} {
		heads, rule = heads+" "+h+" |", rule+"---|"
	}
	s.line("Sizes in bytes. All descriptors begin with `type`, `parentObj` at 8 and `rank` at 16; the rest is a union at 24.\n\n%s\n%s", heads, rule)
	for _, v := range Versions {
		s.line("| v%d | %s | %d | %d | %d | `%s` |", v.Number, v.Release, v.Descr, v.Type, v.Args, v.Source)
	}
	s.line("\nOffsets by version; –: the version does not have the member. Version 1 has one byte for names.")
	for _, e := range Events {
		if e.Member == "" {
			continue
		}
		head, rule := "", ""
		for _, v := range Versions {
			if v.Number >= e.Since {
				head, rule = head+fmt.Sprintf(" v%d |", v.Number), rule+"---:|"
			}
		}
		s.line("\n| `%s` | |%s\n|---|---|%s", e.Member, head, rule)
		for i := range e.Members {
			m := &e.Members[i]
			if m.Name == "" || m.RCCL {
				continue
			}
			row := ""
			for _, v := range Versions {
				if v.Number < e.Since {
					continue
				}
				if p, ok := m.Place(v.Number); ok {
					row += fmt.Sprintf(" %d |", p.Offset)
				} else {
					row += " – |"
				}
			}
			names := m.Name
			if m.At[0].Name != "" {
				names += "`, `" + m.At[0].Name
			}
			c := m.Kind.CType()
			if m.Kind == Bool {
				c = "bool"
			}
			s.line("| `%s` | `%s` |%s", names, strings.TrimSpace(c), row)
		}
	}
}

// span says which versions have a member.
func span(m *Member) string {
	if m.RCCL {
		return "RCCL's version 6"
	}
	first, last := m.Since(), cmp.Or(m.until(), Newest().Number)
	switch {
	case first == last:
		return fmt.Sprintf("version %d", first)
	case last == Newest().Number:
		return fmt.Sprintf("from version %d on", first)
	}
	return fmt.Sprintf("versions %d to %d", first, last)
}
