// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"debug/elf"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// graph says of each file which others it uses, and by what.
type graph map[string]map[string][]string

func (g graph) add(from, to, by string) {
	if g[from] == nil {
		g[from] = map[string][]string{}
	}
	if to != "" && to != from && !slices.Contains(g[from][to], by) {
		g[from][to] = append(g[from][to], by)
	}
}

// circles are the files that use each other, by whatever way: one list for each circle, sorted.
func (g graph) circles() [][]string {
	var out [][]string
	in := map[string]bool{}
	for _, a := range slices.Sorted(maps.Keys(g)) {
		if in[a] {
			continue
		}
		circle := []string{a}
		for _, b := range slices.Sorted(maps.Keys(g)) {
			if b != a && g.leads(a, b) && g.leads(b, a) {
				circle = append(circle, b)
				in[b] = true
			}
		}
		if len(circle) > 1 {
			out = append(out, circle)
		}
	}
	return out
}

// leads tells whether a file uses another, itself or by others.
func (g graph) leads(from, to string) bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for next := range g[todo[0]] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return false
}

func (g graph) wantNoCircles(t *testing.T, atLeast int) {
	t.Helper()
	if len(g) < atLeast {
		t.Fatalf("looked at %d files only", len(g))
	}
	for _, circle := range g.circles() {
		var why strings.Builder
		for _, a := range circle {
			for _, b := range slices.Sorted(maps.Keys(g[a])) {
				if slices.Contains(circle, b) {
					fmt.Fprintf(&why, "\n  %s uses %s: %s", a, b, strings.Join(g[a][b], ", "))
				}
			}
		}
		t.Errorf("these stand in a circle: %s%s", strings.Join(circle, ", "), why.String())
	}
}

func TestCirclesAreFound(t *testing.T) {
	g := graph{}
	for _, edge := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "b"}, {"a", "e"}, {"f", "g"}, {"g", "f"}, {"e", ""}} {
		g.add(edge[0], edge[1], "x")
	}
	if diff := cmp.Diff([][]string{{"b", "c", "d"}, {"f", "g"}}, g.circles()); diff != "" {
		t.Error(diff)
	}
}

// No file of the plugin uses a symbol of one that uses it: what inline functions of headers use counts for the file that
// they are compiled into.
func TestPluginFilesStandInNoCircle(t *testing.T) {
	sources, err := filepath.Glob("../plugin/*.c")
	if err != nil {
		t.Fatal(err)
	}
	home := map[string]string{}
	wanted := map[string][]string{}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		object, err := elf.Open("../build/plugin/" + name + ".o")
		need.NoError(t, "the plugin's object files (make build)", err)
		symbols, err := object.Symbols()
		object.Close()
		if err != nil {
			t.Fatal(name, err)
		}
		for _, s := range symbols {
			switch bind := elf.ST_BIND(s.Info); {
			case bind != elf.STB_GLOBAL && bind != elf.STB_WEAK:
			case s.Section == elf.SHN_UNDEF:
				wanted[name] = append(wanted[name], s.Name)
			default:
				home[s.Name] = name
			}
		}
	}
	g := graph{}
	for name, symbols := range wanted {
		for _, s := range symbols {
			g.add(name, home[s], s)
		}
	}
	g.wantNoCircles(t, 30)
	if !g.leads("life", "ring") {
		t.Error("life uses ring, which was not seen")
	}
}

// naming reads which files of a folder name which others of it; a pattern's first group is the name.
func naming(t *testing.T, files string, pattern *regexp.Regexp, name func(string) string) graph {
	t.Helper()
	paths, err := filepath.Glob(files)
	if err != nil {
		t.Fatal(err)
	}
	g := graph{}
	for _, path := range paths {
		text := testkit.Read(t, path)
		from := filepath.Base(path)
		g.add(from, "", "")
		for _, m := range pattern.FindAllSubmatch(text, -1) {
			g.add(from, name(string(m[1])), strings.TrimSpace(string(m[0])))
		}
	}
	return g
}

func TestPluginHeadersStandInNoCircle(t *testing.T) {
	g := naming(t, "../plugin/*.h", regexp.MustCompile(`(?m)^#include "([^"/]+\.h)"`), func(n string) string { return n })
	g.wantNoCircles(t, 30)
	if !g.leads("event.h", "shm.h") {
		t.Error("event.h includes shm.h, which was not seen")
	}
}

// pageFiles are the sources of the timeline's page; its types count as much as its values.
func pageFiles(t *testing.T) graph {
	t.Helper()
	return naming(t, "../timeline/page/src/*.ts", regexp.MustCompile(`(?m)\bfrom "\./([^"]+)";$`), func(n string) string { return n + ".ts" })
}

func TestPageFilesStandInNoCircle(t *testing.T) {
	g := pageFiles(t)
	g.wantNoCircles(t, 40)
	if !g.leads("main.ts", "columns.ts") || !g.leads("input.ts", "state.ts") {
		t.Error("main.ts uses columns.ts, and input.ts uses state.ts, which was not seen")
	}
}

func TestPageFilesAreShort(t *testing.T) {
	const most = 300
	for name := range pageFiles(t) {
		text := testkit.Read(t, "../timeline/page/src/"+name)
		if lines := strings.Count(string(text), "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d: it does more than one thing", name, lines, most)
		}
	}
}
