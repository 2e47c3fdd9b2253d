// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What Python writes of plain values is read, and nothing else: least of all what names or calls something.
func TestPlainValuesAlone(t *testing.T) {
	grows := "\x80\x02(]q\x00"
	for i := range 24 { // each list has the one before it four times
		before := "h" + string(rune(i))
		grows += "]q" + string(rune(i+1)) + "(" + strings.Repeat(before, 4) + "e"
	}
	for _, c := range []struct{ name, data, want, err string }{
		{"all of them", "\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xff\xff\xff\xffM\x00\x01N\x88\x89" +
			"\x8a\x05\x00\x00\x00\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00eX\x01\x00\x00\x00bq\x03h\x01K\x02\x86u.",
			`{"a":[1,-1,256,null,true,false,4294967296,1.5],"b":["a",2]}`, ""},
		{"a list that occurs twice", "\x80\x02}(X\x01\x00\x00\x00x]q\x00(K\x01eX\x01\x00\x00\x00yh\x00u.",
			`{"x":[1],"y":[1]}`, ""},
		{"protocol 4", "\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94)s.", `{"a":[]}`, ""},
		{"a call", "\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "", "instruction 0x63"},
		{"cut off", "\x80\x02X\xff\xff\xff\x7fabc", "", "cut off"},
		{"cut off in an instruction", "\x80\x02J\x01", "", "cut off"},
		{"no end", "\x80\x02N", "", "cut off"},
		{"too little on the stack", "\x80\x02e.", "", "lacks"},
		{"an empty memo", "\x80\x02h\x05.", "", "lacks"},
		{"an endless object", "\x80\x02]q\x00h\x00a.", "", "nested deeper"},
		{"a little that becomes much", grows + "t.", "", "more than 1048576 bytes"},
		{"a mark in a tuple", "\x80\x02(q\x00(\x86.", "", "lacks"},
		{"a dict by numbers", "\x80\x02}K\x01K\x02s.", "", "no strings"},
		{"a huge number", "\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", "", "64 bits"},
	} {
		got, err := JSON([]byte(c.data), 1<<20)
		if c.err == "" {
			testkit.Check(t, err == nil && string(got) == c.want, "%s: %s, %v", c.name, got, err)
			continue
		}
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.err), "%s: %s, %v", c.name, got, err)
	}
}

// Whatever it reads: what comes of it is JSON, and no more than is allowed.
func FuzzJSON(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xff\xff\xff\xff\x8a\x01\xffh\x01ee\x86u."))
	f.Add([]byte("\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94)s."))
	f.Add(testkit.Read(f, "../testdata/flightrecorder/missing/nccl_trace_rank_2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := JSON(b, 1<<20)
		testkit.Check(t, err != nil || json.Valid(text) && len(text) <= 2<<20, "%.200s", text)
	})
}
