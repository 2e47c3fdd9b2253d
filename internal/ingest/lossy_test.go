// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// framedLine is a line of Inspector's of one of four ranks on two hosts.
func framedLine(rank int, version, rest string) string {
	return fmt.Sprintf(
		`{"header":{"id":"0x7f8c496ae9f661","comm_name":"dp","rank":%d,"n_ranks":4,"nnodes":2},"metadata":{"inspector_output_format_version":"%s","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1760000000000000,"hostname":"node%d","pid":%d},%s}`+"\n",
		rank, version, rank/2, 4000+rank, rest)
}

func lossyCollective(number uint64) string {
	return fmt.Sprintf(
		`"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1048576,"coll_exec_time_us":120,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":8.7,"coll_busbw_gbs":13.1}`, number)
}

func lossyMessage(function string, number, peer int) string {
	return fmt.Sprintf(
		`"p2p_perf":{"p2p":"%s","p2p_sn":%d,"p2p_peer":%d,"p2p_msg_size_bytes":1048576,"p2p_exec_time_us":120,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":8.7,"p2p_busbw_gbs":8.7}`, function, number, peer)
}

// importText imports a file and gives what the report says of it, and that nothing hangs in it.
func importText(t *testing.T, name, text string) (*Result, *operations.Report) {
	t.Helper()
	in := filepath.Join(t.TempDir(), name)
	testkit.Write(t, in, []byte(text))
	dir := filepath.Join(t.TempDir(), "made")
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	report := testkit.Value(operations.Observe(unify(t, dir, false), new(operations.Observer)))(t)
	if v := report.Verdict; v.StandsOut || !strings.HasPrefix(v.Text, "Not known who made the others wait: ") {
		t.Errorf("accused: %s", v.Text)
	}
	held, err := hang.Find(dir, time.Now(), nil)
	testkit.Require(t, err == nil && len(held.Jobs) == 1, "%v %v", held, err)
	for _, s := range held.Jobs[0].Stops {
		t.Errorf("stop: %s", s.Text)
	}
	testkit.Check(t, len(held.Jobs[0].Culprits)+len(held.Jobs[0].Communicators) == 0 &&
		len(held.Jobs[0].Inexact) == res.Processes, "%+v", held.Jobs[0])
	return res, report
}

// Where a ring was overwritten, files begin anywhere and have holes: what all members have is matched by its numbers,
// what some lack is left out, losses are counted of each process, and nobody is accused.
func TestRingsThatWereOverwritten(t *testing.T) {
	for _, c := range []struct {
		version, loss string
		tail          uint64 // operations at the end that ranks behind the first lack
	}{{"v4.0", "NOT_IN_INPUT::COLL", 0}, {"v4.1", "DROPPED_BY_PROFILER::COLL", 0}, {"v4.0", "NOT_IN_INPUT::COLL", 7}} {
		text := ""
		for rank := range 4 {
			kept := uint64(21)
			if rank > 0 {
				kept = 16
			}
			dropped := uint64(0)
			for end := uint64(25); end <= 100; end += 25 {
				for number := end - kept; number < end; number++ {
					if rank == 0 || number < 100-c.tail {
						text += framedLine(rank, c.version, lossyCollective(number))
					}
				}
				if dropped += 25 - kept; c.version == "v4.1" {
					text += framedLine(rank, c.version, fmt.Sprintf(
						`"dump_stats":{"coll_dropped_total":%d,"p2p_dropped_total":0}`, dropped))
				}
			}
		}
		_, report := importText(t, "rings.jsonl", text)
		s := &report.Summary
		if s.Operations != 64-c.tail || s.LeftOut != 20+c.tail || s.Lost[c.loss] != 124 || len(s.Lost) != 1 {
			t.Errorf("%s: %d operations, %d calls left out, lost %v", c.version, s.Operations, s.LeftOut, s.Lost)
		}
		want := []operations.LostOf{{Process: "Rank 0", Lost: 16}, {Process: "Rank 1", Lost: 36},
			{Process: "Rank 2", Lost: 36}, {Process: "Rank 3", Lost: 36}}
		testkit.Check(t, slices.Equal(s.LostByProcess, want), "%s: lost %+v", c.version, s.LostByProcess)
		d := s.Deviations[0]
		testkit.Check(t, d.First == 4 && d.Last == 8 && d.Detail == "ranks 1-3 lack them", "%s: %+v", c.version, d)
	}
}

// Messages that one end lost are counted, those of the pair are not matched, and nobody is accused.
func TestMessagesThatOneEndLost(t *testing.T) {
	text := ""
	for rank := range 4 {
		for i := range 20 {
			if rank != 2 || i >= 7 {
				text += framedLine(rank, "v4.0", lossyMessage("Send", 2*i+1, (rank+1)%4))
			}
			text += framedLine(rank, "v4.0", lossyMessage("Recv", 2*i+2, (rank+3)%4))
		}
	}
	_, report := importText(t, "messages.jsonl", text)
	s := &report.Summary
	testkit.Check(t, s.Lost["NOT_IN_INPUT::P2P"] == 7 && len(s.Lost) == 1 && s.Calls == 153, "%+v", s)
	testkit.Check(t, len(s.Deviations) == 1 && s.Deviations[0].Function == "Send 2>3" && s.Deviations[0].First == 0 &&
		s.Deviations[0].Last == 19 && strings.HasSuffix(s.Deviations[0].Detail, "7 messages have no partner"), "%+v",
		s.Deviations)
}

// Numbers that JSON has not got make a field unknown, and nothing else.
func TestNumbersThatAreNone(t *testing.T) {
	text := ""
	for rank := range 4 {
		text += framedLine(rank, "v4.0", lossyCollective(0)) +
			framedLine(rank, "v4.0", strings.NewReplacer("8.7", "inf", "13.1", "-nan").Replace(lossyCollective(1))) +
			framedLine(rank, "v4.0", strings.Replace(lossyCollective(2), `_time_us":120`, `_time_us":nan`, 1)) +
			framedLine(rank, "v4.0", strings.Replace(lossyCollective(3), `_time_us":120`, `_time_us":120.5`, 1))
	}
	res, report := importText(t, "numbers.jsonl", text)
	s := &report.Summary
	testkit.Check(t, res.Malformed == 0 && s.Operations == 4 && s.Calls == 16 && s.Timing["DURATION"] == 12 &&
		s.Timing["ENQUEUE"] == 4, "%+v, %+v", res, s)
}

// What is in the way takes nothing else with it: a mark of the encoding, records of kinds that are not known, half
// lines, what is there twice.
func TestTheRestOfTheFileStays(t *testing.T) {
	text := "\ufeff"
	for rank := range 4 {
		text += framedLine(rank, "v4.9", lossyCollective(0)) + framedLine(rank, "v4.9", `"energy":{"joules":5}`) +
			framedLine(rank, "v4.9", lossyCollective(0))
	}
	half := framedLine(1, "v4.9", lossyCollective(7))
	text += half[:len(half)/2] + framedLine(0, "v4.9", lossyCollective(7)) // of two writers
	text += half[:len(half)/3]
	res, report := importText(t, "dirt.jsonl", text)
	testkit.Check(t, res.Malformed == 1 && res.Truncated == 1 && res.NotUsed["OTHER_RECORDS"] == 4 &&
		res.NotUsed["REPEATED_OPERATIONS"] == 4 && report.Summary.Operations == 1, "%+v, %+v", res, report.Summary)
}

// Whatever else is in a file of Inspector's: operations that have a number are matched by it, losses are what the file
// says, and nobody is accused.
func TestOddFilesOfInspector(t *testing.T) {
	unnumbered := strings.Replace(lossyCollective(3), `"coll_sn":3`, `"coll_sn":nan`, 1)
	dropped := func(n int) string { return fmt.Sprintf(`"dump_stats":{"coll_dropped_total":%d}`, n) }
	// lines are each rank's, in place of a fourth operation.
	for what, c := range map[string]struct {
		lines                        func(rank int) string
		operations, lost, lineErrors uint64
		notUsed                      string
	}{
		"numbers in other notations": {func(rank int) string {
			return framedLine(rank, "v5.0", strings.NewReplacer(`"coll_sn":3`, `"coll_sn":"3"`, "1048576",
				"1048576.0").Replace(lossyCollective(3)))
		}, 4, 0, 0, ""},
		"a number that is none": {func(rank int) string {
			return framedLine(rank, "v4.0", unnumbered) + framedLine(rank, "v4.0", lossyCollective(4))
		}, 4, 4, 4, ""},
		"a negative number": {func(rank int) string {
			return framedLine(rank, "v4.0", strings.Replace(unnumbered, "nan", "-1", 1))
		}, 3, 0, 4, ""},
		"an unknown kind without header": {func(rank int) string {
			return framedLine(rank, "v5.0", dropped(0)) + "{" + lossyCollective(3) + "}\n" +
				`{"energy":{"joules":5}}` + "\n"
		}, 4, 0, 0, "OTHER_RECORDS"},
		"a counter that is none": {func(rank int) string {
			return framedLine(rank, "v4.1", strings.Replace(dropped(5), "5", "inf", 1))
		}, 3, 0, 0, ""},
		"more dropped than numbers show": {func(rank int) string { return framedLine(rank, "v4.1", dropped(rank)) },
			3, 6, 0, ""},
	} {
		text := ""
		for rank := range 4 {
			for number := range uint64(3) {
				text += framedLine(rank, "v4.0", lossyCollective(number))
			}
			text += c.lines(rank)
		}
		res, report := importText(t, "odd.jsonl", text)
		lost := uint64(0)
		for _, n := range report.Summary.Lost {
			lost += n
		}
		testkit.Check(t, res.Malformed == c.lineErrors && report.Summary.Operations == c.operations && lost == c.lost &&
			(c.notUsed == "" || res.NotUsed[c.notUsed] == 4), "%s: %+v, %d operations, %d lost", what, res,
			report.Summary.Operations, lost)
	}
}

// A process of which everything was dropped is of its job nevertheless, with its losses.
func TestEverythingOfARankWasDropped(t *testing.T) {
	text := ""
	for rank := range 4 {
		for number := range uint64(5) {
			if rank != 2 {
				text += framedLine(rank, "v4.1", lossyCollective(number))
			}
		}
	}
	text += framedLine(2, "v4.1", `"dump_stats":{"coll_dropped_total":5,"p2p_dropped_total":1}`) +
		strings.Repeat("\x00", 512) // and what was never written
	res, report := importText(t, "dropped.jsonl", text)
	s := &report.Summary
	testkit.Check(t, res.Malformed == 0 && res.Truncated == 1 && s.Operations == 0 && s.LeftOut == 15 &&
		len(s.LostByProcess) == 1 && s.LostByProcess[0] == operations.LostOf{Process: "Rank 2", Lost: 6}, "%+v, %+v",
		res, s)
}

// An export says where its archive is incomplete, so that nobody is accused of what it lacks.
func TestExportsOfIncompleteArchives(t *testing.T) {
	text := ""
	for rank := range 4 {
		for number := range uint64(10) {
			if rank == 0 || number < 3 || number > 5 {
				text += framedLine(rank, "v4.0", lossyCollective(number))
			}
		}
	}
	in := filepath.Join(t.TempDir(), "in.jsonl")
	testkit.Write(t, in, []byte(text))
	dir := filepath.Join(t.TempDir(), "made")
	testkit.Value(Import([]string{in}, dir, nil))(t)
	out := filepath.Join(t.TempDir(), "jsonl")
	a := unify(t, dir, false)
	testkit.Value(export.JSONL(a, out, nil))(t)
	again := filepath.Join(t.TempDir(), "again")
	testkit.Value(Import([]string{out}, again, nil))(t)
	held, err := hang.Find(again, time.Now(), nil)
	testkit.Check(t, err == nil && len(held.Jobs) == 1 && len(held.Jobs[0].Stops)+len(held.Jobs[0].Culprits) == 0,
		"%+v, %v", held, err)
	losses := func(a *otf2.Archive) any {
		s := testkit.Value(operations.Observe(a, new(operations.Observer)))(t).Summary
		testkit.Check(t, len(s.LostByProcess) == 3 && s.Lost["NOT_IN_INPUT::COLL"] == 9, "%+v", s)
		return []any{s.Lost, s.LostByProcess, s.Deviations, s.Operations}
	}
	testkit.Same(t, losses(a), losses(unify(t, again, false)))
}
