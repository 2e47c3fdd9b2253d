// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// goWords are the parts of OTF2 names that Go spells otherwise than by a capital and small letters.
var goWords = map[string]string{
	"MPI": "MPI", "CUDA": "CUDA", "HIP": "HIP", "UPC": "UPC", "CPU": "CPU", "GPU": "GPU", "PAPI": "PAPI",
	"OPENMP": "OpenMP", "OPENACC": "OpenACC", "OPENCL": "OpenCL", "SHMEM": "SHMEM", "GASPI": "GASPI", "HMPP": "HMPP",
	"OMPSS": "OmpSs", "MTAPI": "MTAPI", "OS": "OS", "PU": "PU", "NUMA": "NUMA", "POSIX": "POSIX", "SION": "SION",
	"QTTHREAD": "QtThread", "ACETHREAD": "ACEThread", "TBBTHREAD": "TBBThread", "WINTHREAD": "WinThread",
	"ONE2ALL": "One2All", "ALL2ONE": "All2One", "ALL2ALL": "All2All", "POINT2POINT": "Point2Point",
}

// goNames are whole OTF2 names with a spelling of their own.
var goNames = map[string]string{"RMA": "RMA", "FILE_IO": "FileIO", "FILE_IO_METADATA": "FileIOMetadata"}

// goName turns OTF2's NAME_OF_VALUE into NameOfValue.
func goName(name string) string {
	if s, ok := goNames[name]; ok {
		return s
	}
	var b strings.Builder
	for _, word := range strings.Split(name, "_") {
		if s, ok := goWords[word]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return b.String()
}

// exported turns a field name into the name of a struct field.
func exported(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// param turns a field name into the name of a Go parameter.
func param(name string) string {
	switch name {
	case "type":
		return "typ"
	case "string":
		return "text"
	}
	return name
}

// goType is the Go type of a field's value in signatures and structs.
func goType(f schema.Field) string {
	switch {
	case f.Type == "CollectiveRoot":
		return "uint32" // a rank, or one of the CollectiveRoot constants
	case f.Type != "":
		return f.Type
	}
	switch f.Encoding {
	case "u8":
		return "uint8"
	case "c32":
		return "uint32"
	case "c64", "f64":
		return "uint64"
	case "s64":
		return "int64"
	case "dbl":
		return "float64"
	case "str":
		return "string"
	}
	panic("gen: no Go type for encoding " + f.Encoding)
}

// maxSize is the largest number of bytes that a field can take, the measure of libotf2's size estimates.
func maxSize(f schema.Field) int {
	switch f.Encoding {
	case "u8":
		return 1
	case "c32":
		return 5
	case "c64", "s64":
		return 9
	case "f64", "dbl":
		return 8
	}
	panic("gen: no maximum size for encoding " + f.Encoding)
}

// split returns a record's fields before its repeated part, the repeated ones and those after it; the last field
// of the first list is then the count.
func split(r schema.Record) (before, repeated, after []schema.Field) {
	for _, f := range r.Fields {
		switch {
		case f.Repeated:
			repeated = append(repeated, f)
		case len(repeated) > 0:
			after = append(after, f)
		default:
			before = append(before, f)
		}
	}
	return before, repeated, after
}

// describe lists a record's fields for a doc comment.
func describe(r schema.Record) string {
	var parts []string
	for _, f := range r.Fields {
		if !f.Legacy {
			parts = append(parts, f.Name)
		}
	}
	if len(parts) == 0 {
		return "no fields"
	}
	return strings.Join(parts, ", ")
}

// comment writes text as a comment, in lines of usual length.
func comment(s *source, text string) {
	const width = 116
	line := "//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			s.line("%s", line)
			line = "//"
		}
		line += " " + word
	}
	s.line("%s", line)
}
