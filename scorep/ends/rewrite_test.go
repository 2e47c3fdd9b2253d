// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A launch's end is moved with all that is there at its end, and its bandwidths become what they are in the longer
// time. All else stays.
func TestRewrite(t *testing.T) {
	const chunk = 256 << 10
	path := filepath.Join(t.TempDir(), "1.evt")
	w := testkit.Value(otf2.CreateEventWriter(path, &otf2.EventWriterOptions{ChunkSize: chunk}))(t)
	double, number := []otf2.Type{otf2.TypeDouble, otf2.TypeDouble}, []otf2.Type{otf2.TypeUint64}
	bandwidths := []uint64{math.Float64bits(8), math.Float64bits(4)}
	for i := range otf2.Timestamp(2) {
		t := 100 + 1000*i
		for _, err := range []error{
			w.Metric(t, nil, 1, number, []uint64{1}), w.Enter(t, nil, 7), w.MpiCollectiveBegin(t, nil),
			w.Metric(t, nil, 2, double, bandwidths),
			w.Metric(t+100, nil, 1, number, []uint64{0}),
			w.MpiCollectiveEnd(t+100, nil, otf2.CollectiveOpAllreduce, 0, 0, 1, 1),
			w.Metric(t+100, nil, 2, double, []uint64{0, 0}), w.Leave(t+100, nil, 7),
		} {
			if err != nil {
				panic(err)
			}
		}
	}
	testkit.Must(t, w.Close())
	testkit.Must(t, Rewrite(path, chunk, []Move{{enter: 1, first: 4, last: 7, by: 300, longer: 4}}))
	var got []string
	_, err := otf2.ScanEventsWhile(path, chunk, func(ev *otf2.Event) error {
		text := fmt.Sprint(ev.Time)
		if ev.Kind == otf2.EventMetric && ev.Metric().Len() == 2 {
			_, bits := ev.Metric().At(0)
			text += fmt.Sprintf(" %g B/s", math.Float64frombits(bits))
		}
		got = append(got, text)
		return nil
	})
	testkit.Require(t, err == nil, "%v", err)
	want := []string{"100", "100", "100", "100 2 B/s", "500", "500", "500 0 B/s", "500", "1100", "1100", "1100",
		"1100 8 B/s", "1200", "1200", "1200 0 B/s", "1200"}
	testkit.Check(t, slices.Equal(got, want), "got %q\nwant %q", got, want)
	before := testkit.Read(t, path)
	// Times that would go back are refused, and the file stays as it is.
	testkit.Check(t, Rewrite(path, chunk, []Move{{enter: 1, first: 4, last: 7, by: 1 << 40, longer: 2}}) != nil,
		"a move beyond what follows was made")
	after, err := os.ReadFile(path)
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	testkit.Check(t, err == nil && bytes.Equal(before, after) && len(left) == 1,
		"after an error the file has changed (%v), or there are others: %q", err, left)
	testkit.Check(t, Rewrite(filepath.Join(t.TempDir(), "none.evt"), chunk, nil) != nil,
		"a file that is not there was written anew")
}
