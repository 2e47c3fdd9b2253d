// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Programs in C write 0 and 1 where others write false and true.
func TestBooleansMayBeNumbers(t *testing.T) {
	for text, want := range map[string]boolean{"true": true, "1": true, "false": false, "0": false, "null": false} {
		var l line
		err := json.Unmarshal(
			[]byte(`{"isPxn":`+text+`,"details":{"graphCaptured":`+text+`,"isSend":`+text+`,"graph":`+text+`,"unfinished":`+text+`}}`), &l)
		d := l.Details
		testkit.Check(t, err == nil && l.PXN == want && d.Captured == want && d.IsSend == want && d.Graph == want &&
			d.Unfinished == want, "%s is read as %+v: %v", text, l, err)
	}
	for _, text := range []string{`"1"`, `"yes"`, `[]`, `{}`} {
		testkit.Check(t, json.Unmarshal([]byte(`{"isPxn":`+text+`}`), new(line)) != nil, "%s is a boolean", text)
	}
}
