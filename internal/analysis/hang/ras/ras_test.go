// SPDX-License-Identifier: Apache-2.0

package ras_test

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/ras"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const sample = "testdata/userguide.json"

// serve answers like NCCL's RAS; with refuse, like one without JSON.
func serve(t *testing.T, refuse bool) (address string) {
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	text := testkit.Read(t, sample)
	if refuse {
		text = testkit.Read(t, "testdata/text.txt")
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for lines := bufio.NewScanner(c); lines.Scan(); {
			answer := "ERROR: unknown command\n"
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "CLIENT PROTOCOL "):
				answer = "SERVER PROTOCOL 2\n"
			case line == "SET FORMAT json" && !refuse:
				answer = "OK\n"
			case line == "STATUS":
				answer = string(text)
			}
			if _, err := fmt.Fprint(c, answer); err != nil || answer == string(text) {
				return
			}
		}
	}()
	return l.Addr().String()
}

func TestTheSampleOfNCCLsUserGuide(t *testing.T) {
	for _, source := range []string{sample, serve(t, false)} {
		s := testkit.Value(ras.Read(source))(t)
		testkit.Require(t, s.NCCL == "2.29.1" && len(s.Communicators) == 1, "%+v", s)
		c := s.Communicators[0]
		testkit.Check(t, c.Hash == 0xae94423cfbb2ef4a && c.Size == 2 && len(c.Ranks) == 1 &&
			c.Ranks[0].PID == 1524344 && c.Ranks[0].Collectives["AllReduce"] == 0 && len(c.Missing) == 1 &&
			c.Missing[0].Rank == 1 && c.Missing[0].Status.Unresponsive && !c.Missing[0].Status.Dead, "%+v", c)
	}
}

func TestWhatIsNoAnswerOfRAS(t *testing.T) {
	other := filepath.Join(t.TempDir(), "text")
	testkit.Write(t, other, []byte("version 2.27.3 of something"))
	for source, want := range map[string]string{
		other: "neither the JSON nor the text of ncclras", "no/such/file": "give a file, or HOST:PORT",
		"127.0.0.1:1": "connection refused",
	} {
		_, err := ras.Read(source)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", source, err)
	}
}

// NCCL 2.28.9 leaves out a comma before the status of missing ranks.
func TestJSONWithoutComma(t *testing.T) {
	s := testkit.Value(ras.Read("testdata/no-comma.json"))(t)
	c := s.Communicators[0]
	if w := s.Witness(job(t)); len(w.Sentences) != 2 ||
		w.Sentences[1] != "RAS gets no answer from rank 2 of communicator 0x97baf99a3daae59f (process 1002 on "+
			"10.0.0.1)" {
		t.Errorf("%q", w.Sentences)
	}
	testkit.Check(t, s.NCCL == "2.28.9" && c.Size == 4 && len(c.Ranks) == 3 && len(c.Missing) == 1 &&
		c.Missing[0].Rank == 2 && c.Missing[0].PID == 1002 && c.Missing[0].Status.Unresponsive, "%+v", s)
}

// Before NCCL 2.28.7 RAS has only text. It names the ranks in trouble, and says how far the others are.
func TestTextOfRAS(t *testing.T) {
	for _, source := range []string{"testdata/text.txt", serve(t, true)} {
		s := testkit.Value(ras.Read(source))(t)
		testkit.Require(t, s.NCCL == "2.26.2" && len(s.Communicators) == 1, "%+v", s)
		c := s.Communicators[0]
		testkit.Check(t, c.Hash == 0xae94423cfbb2ef4a && c.Size == 4 && len(c.Missing) == 1 && c.Missing[0].Rank == 3 &&
			c.Missing[0].PID == 103 && c.Missing[0].Status.Dead, "%+v", c)
		counts := make(map[int]uint64)
		for _, r := range c.Ranks {
			counts[r.Rank] = r.Collectives["AllReduce"]
		}
		testkit.Check(t, maps.Equal(counts, map[int]uint64{0: 17, 1: 16, 2: 17}), "%v", counts)
	}
	s := testkit.Value(ras.Parse(strings.NewReader("NCCL version 2.26.2\n#0-0 (ae94423cfbb2ef4a) MISMATCH\n")))(t)
	w := s.Witness(job(t))
	testkit.Check(t, len(w.Sentences) == 1 && w.Sentences[0] == "RAS reports MISMATCH on tp, and not of whom" &&
		!w.Foreign, "%+v", w)
	s = testkit.Value(ras.Parse(strings.NewReader("NCCL version 2.26.2\n#0-0 (1122334455667788) MISMATCH\n")))(t)
	w = s.Witness(job(t))
	testkit.Check(t, w.Foreign && len(w.Sentences) == 2 && w.Sentences[1] == "RAS reports MISMATCH on communicator "+
		"0x1122334455667788, and not of whom", "%+v", w)
	s = testkit.Value(ras.Parse(
		strings.NewReader(
			"NCCL version 2.24.3\n#0-0 (ae94423cfbb2ef4a) INCOMPLETE\n  Missing communicator data from 1 rank\n  The " +
				"missing rank: 1\n\n#0-0 (ae94423cfbb2ef4a) ERROR\n  Asynchronous error on 1 rank\n  Rank 0 reported " +
				"Remote process error -- GPU 0 managed by process 5 on node 10.0.0.1\n")))(t)
	w = s.Witness(job(t))
	testkit.Check(t, len(w.Silent) == 1 && w.Silent[0].Text == "RAS gets no answer from Rank 0" &&
		slices.Equal(w.Sentences, []string{"RAS: Rank 1 has asynchronous error 6 on tp"}), "%+v", w)
}

// job makes a job of two ranks of the sample's communicator, in reverse order in the world.
func job(t testing.TB) *progress.Job {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	for rank := range 2 {
		p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 2).On("n0", 100+rank)
		p.Comm(description.Comm{ID: 0xae94423cfbb2ef4a, Name: "tp", NRanks: 2, Rank: 1 - rank,
			InitTime: shardtest.Epoch})
		p.Flush()
	}
	all, _, err := progress.List(dir)
	testkit.Must(t, err)
	return all[0]
}

func TestItsWordIsOfRanksOfTheWorld(t *testing.T) {
	s := testkit.Value(ras.Read(sample))(t)
	j := job(t)
	w := s.Witness(j)
	testkit.Check(t, len(w.Silent) == 1 && slices.Equal(w.Silent[0].Culprits, []int{0}) &&
		w.Silent[0].Text == "RAS gets no answer from Rank 0 (process 1524345 on 172.16.64.245)" &&
		len(w.Sentences) == 0, "%+v", w)

	first := s.Communicators[0].Ranks[0]
	second := first
	second.Rank, second.Collectives = 1, map[string]uint64{"AllReduce": 17}
	second.Status.Error = 6
	s.Communicators[0].Ranks, s.Communicators[0].Missing = append(s.Communicators[0].Ranks, second), nil
	w = s.Witness(j)
	want := []string{"RAS counts AllReduce begun on tp: 0 by Rank 1; 17 by Rank 0",
		"RAS: Rank 0 has asynchronous error 6 on tp"}
	testkit.Check(t, slices.Equal(w.Sentences, want), "%q", w.Sentences)
	testkit.Check(t, len(w.Behind) == 1 && slices.Equal(w.Behind[0].Culprits, []int{1}), "%+v", w.Behind)

	s.Communicators[0].Hash++
	w = s.Witness(j)
	testkit.Check(t, w.Foreign && len(w.Sentences) == 1 && len(w.Silent)+len(w.Behind) == 0, "of another job: %+v", w)
}
