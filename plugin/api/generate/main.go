// SPDX-License-Identifier: Apache-2.0

// Command generate makes what C, Go, docs/nccl-profiler-api.md and plugin/api/layouts.md have of NCCL's profiler API
// from one table (table.go), the versions, the event types with the members of their descriptors, where each version
// has them, what of them the plugin records, and the states; and Go's mirror of plugin/shm.h from that. It is run by go
// generate and writes below the folder of the repository.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run . -write ../../..

func main() {
	if len(os.Args) != 3 || os.Args[1] != "-write" {
		fmt.Fprintln(os.Stderr, "generate -write FOLDER")
		os.Exit(2)
	}
	for _, f := range files {
		path := filepath.Join(os.Args[2], f.path)
		old, err := os.ReadFile(path)
		if err != nil && f.section != "" {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
		text, err := f.text(os.Args[2], string(old))
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

// file is a generated file, or a section of a page.
type file struct {
	path    string
	section string // "": the whole file
	make    func(*source)
}

var files = []file{
	{"plugin/api_types.h", "", types},
	{"plugin/api_versions.h", "", versions},
	{"plugin/api_check.c", "", check},
	{"plugin/api_records.h", "", records},
	{"plugin/api_fill.h", "", fill},
	{"plugin/api/zz_table.go", "", runtime},
	{"plugin/shm/zz_events.go", "", mirror},
	{shmMirror, "", layouts},
	{"internal/replay/descriptor/zz_events.go", "", descriptors},
	{"internal/replay/host/api.h", "", hostTypes},
	{"internal/replay/host/api.c", "", hostTables},
	{page, "event types", eventPage},
	{page, "states", statePage},
	{"plugin/api/layouts.md", "layouts", layoutPage},
	{page, "implied", impliedPage},
}

const page = "docs/nccl-profiler-api.md"

// text is what the file ought to be, which is old now, in the repository at root.
func (f *file) text(root, old string) (string, error) {
	s := source{root: root}
	if f.section == "" {
		comment := [2]string{"/* ", " */"}
		if strings.HasSuffix(f.path, ".go") {
			comment = [2]string{"// ", ""}
		}
		s.line("%sSPDX-License-Identifier: Apache-2.0%s", comment[0], comment[1])
		from := "plugin/api/generate/table.go"
		if f.path == shmMirror {
			from = shmHeader
		}
		s.line("%sCode generated from %s by make generate; DO NOT EDIT.%s", comment[0], from, comment[1])
	}
	f.make(&s)
	if f.section == "" {
		if strings.HasSuffix(f.path, ".go") {
			text, err := format.Source(s.Bytes())
			return string(text), err
		}
		return s.String(), nil
	}
	begin, end := fmt.Sprintf("<!-- %s: made by `make generate` -->\n", f.section),
		fmt.Sprintf("<!-- %s end -->", f.section)
	before, rest, found := strings.Cut(old, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s has no section %q", f.path, f.section)
	}
	return before + begin + s.String() + end + after, nil
}

// source is text that is being made.
type source struct {
	bytes.Buffer
	root string // of the repository
}

// read is the text of a file that others are made of.
func (s *source) read(path string) string {
	text, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (s *source) line(format string, args ...any) { fmt.Fprintf(&s.Buffer, format+"\n", args...) }

// wrap writes items in lines of at most 120 characters.
func (s *source) wrap(indent string, items []string) {
	line := indent
	for _, item := range items {
		if len(line)+len(item) > 120 && line != indent {
			s.line("%s", strings.TrimRight(line, " "))
			line = indent
		}
		line += item + " "
	}
	if line != indent {
		s.line("%s", strings.TrimRight(line, " "))
	}
}
