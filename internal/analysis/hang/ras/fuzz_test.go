// SPDX-License-Identifier: Apache-2.0

package ras_test

import (
	"bytes"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/ras"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// FuzzStatus: whatever RAS answers, the result is an error or refers only to ranks that the job has.
func FuzzStatus(f *testing.F) {
	text := testkit.Read(f, sample)
	f.Add(text)
	f.Add(text[:len(text)/2])
	for _, change := range [][2]string{
		{`"rank": 0`, `"rank": -1`}, {`"rank": 1`, `"rank": 9223372036854775807`}, {`"hash": "0x`, `"hash": "-0x`},
		{`"size": 2`, `"size": -2`},
		{`"missing_ranks": [`, `"missing_ranks": [{"rank":5,"status":{"considered_dead":true}},`},
		{`"ranks": [`,
			`"ranks": [{"rank":77,"collective_counts":{"AllReduce":18446744073709551615},"status":{"async_error":-1}},`},
	} {
		f.Add(bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1))
	}
	f.Add(testkit.Read(f, "testdata/text.txt"))
	f.Add(testkit.Read(f, "testdata/no-comma.json"))
	f.Add([]byte(
		"#0-0 (ae94423cfbb2ef4a) MISMATCH\n  Communicator ranks have different X operation counts\n  Rank " +
			"99999999999 has not launched any operations\n  Rank 1 has status ABORT\n"))
	j := job(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		s, err := ras.Parse(bytes.NewReader(answer))
		testkit.Require(t, (s == nil) != (err == nil), "%v, %v", s, err)
		if err != nil {
			return
		}
		w := s.Witness(j)
		for _, stop := range append(w.Silent, w.Behind...) {
			for _, rank := range append(stop.Culprits, stop.Among...) {
				testkit.Check(t, rank >= 0 && rank <= 1, "%+v", stop)
			}
		}
	})
}
