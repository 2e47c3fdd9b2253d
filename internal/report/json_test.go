// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestWriteJSON(t *testing.T) {
	type pair struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for _, c := range []struct {
		v            any
		indent, want string
	}{
		{pair{1, "<x>"}, "", `{"schema":1,"a":1,"b":"<x>"}` + "\n"},
		{pair{1, "y"}, "  ", "{\n  \"schema\": 1,\n  \"a\": 1,\n  \"b\": \"y\"\n}\n"},
		{map[string]int{}, "", `{"schema":1}` + "\n"},
		{
			struct {
				Schema int `json:"schema"`
			}{2}, "  ", "{\n  \"schema\": 2\n}\n",
		},
		{struct{}{}, "  ", "{\n  \"schema\": 1\n}\n"},
	} {
		var b strings.Builder
		if err := WriteJSON(&b, c.v, c.indent); err != nil || b.String() != c.want || !json.Valid([]byte(b.String())) {
			t.Errorf("%+v: %v, %q, want %q", c.v, err, b.String(), c.want)
		}
	}
	testkit.Check(t, WriteJSON(new(strings.Builder), []int{1}, "") != nil, "a list has a version")
}
