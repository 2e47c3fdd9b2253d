// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Without a job's id, files are named after the time at which the archive begins.
func TestFilesAreNamedAfterTheirTime(t *testing.T) {
	dir := t.TempDir()
	res := testkit.Value(JSONL(job(t), dir, nil))(t)
	testkit.Equal(t, filepath.Base(res.Files[0]), "trace_1760000000_pid100.jsonl", "filepath.Base(res.Files[0])")
	_, err := JSONL(job(t), dir, &Options{Job: "../4711"})
	testkit.Check(t, err != nil, "a job's id leads out of the folder")
}

// Strings come out as JSON that other parsers read, whatever bytes they hold; numbers keep their nanoseconds.
func TestJSONIsWritten(t *testing.T) {
	var out strings.Builder
	j := newJSONWriter(&out)
	for range 3 { // over the end of the buffer
		j.raw("{")
		for i := range 9000 {
			j.text("t", "\x00\x7f\"\\\n\xff\u00e9\u2028")
			j.micros("m", -int64(i)*1001)
		}
		j.object("o")
		j.boolean("b", true)
		j.null("n")
		j.hex("h", 255)
		j.unsigned("u", 1<<63)
		j.raw("}}\n")
	}
	testkit.Must(t, j.flush())
	for line := range strings.Lines(out.String()) {
		var got map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &got))
		if got["t"] != "\x00\x7f\"\\\n\ufffd\u00e9\u2028" || got["m"] != -9007.999 ||
			got["o"].(map[string]any)["h"] != "0xff" {
			t.Errorf("%v", got)
		}
	}
}
