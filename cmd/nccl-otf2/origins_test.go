// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// archiveLine is the only line of a report that names the archive's place.
var archiveLine = regexp.MustCompile(`(?m)^ *"archive": .*$`)

// reported is the report of an archive or a recording, as JSON without the archive's place.
func reported(t *testing.T, tool, of string) string {
	t.Helper()
	out := string(testkit.Output(t, exec.Command(tool, "report", of, "--format", "json")))
	return archiveLine.ReplaceAllString(out, "")
}

// A replay with recorded times makes the archive that commands make of the recording without playing it: the same
// ranks, hosts and GPUs, and the same answer.
func TestReplayWithRecordedTimesKeepsTheOrigin(t *testing.T) {
	tool := toolWithParts(t)
	for _, name := range []string{"nccl-callbacks/03-onethread-4r-groups", "nccl-callbacks/06-twohosts-2x2",
		"nccl-callbacks/08-v5-nccl228-3p", "nccl-callbacks/12-gpu-few-2p", "nccl-causes/c09-link-slow-4p",
		"nccl-causes/c12-lineage-6p", "nccl-causes/c15-gpu-slow-3p"} {
		folder := filepath.Join("../../testdata", name)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "exp")
			testkit.Output(t, exec.Command(tool, "replay", folder, "--clock", "recorded", "--dir", dir))
			testkit.Equal(t, reported(t, tool, dir), reported(t, tool, folder), "report")
		})
	}
}

// onTwoHosts copies a recording of four processes as if the last two had been on another host, whose clock is ahead.
func onTwoHosts(t *testing.T, recording string, ahead uint64) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "two-hosts")
	testkit.Must(t, os.CopyFS(folder, os.DirFS(recording)))
	for k, host := range []string{"a", "a", "b", "b"} {
		path := filepath.Join(folder, fmt.Sprintf("p%d.rec.jsonl.gz", k))
		read := testkit.Value(gzip.NewReader(bytes.NewReader(testkit.Read(t, path))))(t)
		first, rest, _ := bytes.Cut(testkit.Value(io.ReadAll(read))(t), []byte("\n"))
		var open map[string]any
		decoder := json.NewDecoder(bytes.NewReader(first))
		decoder.UseNumber()
		testkit.Must(t, decoder.Decode(&open))
		open["host"], open["boot"] = "host-"+host, "boot-"+host
		if host == "b" {
			open["real"] = testkit.Value(open["real"].(json.Number).Int64())(t) + int64(ahead)
		}
		var out bytes.Buffer
		written := gzip.NewWriter(&out)
		testkit.Value(written.Write(bytes.Join([][]byte{testkit.Value(json.Marshal(open))(t), rest}, []byte("\n"))))(t)
		testkit.Must(t, written.Close())
		testkit.Write(t, path, out.Bytes())
	}
	return folder
}

// Recorded times are of the clocks of the recording's hosts, which are aligned; those of a live replay are of one
// clock, that of this machine.
func TestReplayAlignsTheRecordedClocks(t *testing.T) {
	tool := toolWithParts(t)
	folder := onTwoHosts(t, "../../testdata/nccl-callbacks/09-straggler-4p", 7_000_000)
	for _, c := range []struct {
		name    string
		options []string
		aligned bool
	}{
		{"recorded", []string{"--clock", "recorded"}, true},
		{"raw files", []string{"--clock", "recorded", "--spool"}, true},
		{"live", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "exp")
			out := string(testkit.Output(t, exec.Command(tool,
				append([]string{"replay", folder, "--dir", dir}, c.options...)...)))
			testkit.Check(t, strings.Contains(out, "4 processes on 2 hosts") == c.aligned &&
				strings.Contains(out, "clocks of 1 host corrected by up to 7.0") == c.aligned, "%s", out)
			report := reported(t, tool, dir)
			testkit.Check(t, strings.Contains(report, `"host": "host-b"`) == c.aligned, "%s", report)
			if c.aligned {
				testkit.Equal(t, report, reported(t, tool, folder), "report")
			}
		})
	}
}
