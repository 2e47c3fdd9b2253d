// SPDX-License-Identifier: Apache-2.0

package mend_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/mend"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestWhatPrintfMakesOfJSON(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing to mend", `{"a": [1, -2.5e3, true, null, "x,y"]}`, `{"a": [1, -2.5e3, true, null, "x,y"]}`},
		{"no numbers", `{"a": inf, "b": -nan,"c":-Infinity, "d":NaN}`, `{"a": null, "b": null,"c":null, "d":null}`},
		{"words and addresses", `{"a": ncclFloat32, "b": 0x1000, "c": (nil)}`,
			`{"a": "ncclFloat32", "b": "0x1000", "c": null}`},
		{"a comma is missing", "{\"a\": 2\n \"b\": {\"c\": 1} \"d\": [1 2]}",
			"{\"a\": 2\n ,\"b\": {\"c\": 1} ,\"d\": [1 ,2]}"},
		{"commas too many", `[{"a": 1,}, {},]`, `[{"a": 1}, {}]`},
		{"in strings nothing changes", `{"a": "inf \" nan, }", "b": 1,}`, `{"a": "inf \" nan, }", "b": 1}`},
		{"a leading zero", `{"a": 007}`, `{"a": "007"}`},
	} {
		got := string(mend.JSON([]byte(c.text)))
		testkit.Check(t, got == c.want && json.Valid([]byte(got)), "%s: %s", c.name, got)
	}
}

// FuzzJSON: what is JSON keeps its meaning, and what comes of anything else is bounded.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,2,{"b":"c"}]}`, `{"a": inf, "b": (nil)`, `{"a": 2 "b": 0x10,}`, `"\`, `,`, `[`, "nan\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := mend.JSON(text)
		testkit.Require(t, len(got) <= 16+8*len(text), "%d bytes of %d", len(got), len(text))
		var want, is any
		if json.Unmarshal(text, &want) != nil {
			return
		}
		testkit.Must(t, json.Unmarshal(got, &is))
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(is)
		testkit.Check(t, bytes.Equal(a, b), "%s became %s", a, b)
	})
}
