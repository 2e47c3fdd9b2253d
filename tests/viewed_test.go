// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

// shownAlone is the members' time of an operation that was so often launched alone. A view has no groups: where it has
// as many of an operation, all were launched alone.
func shownAlone(operation string, calls float64) string {
	return fmt.Sprintf("%s, members' time of %v alone", operation, calls)
}

// altered are the properties by which a view says that it is not all that was recorded.
var altered = []string{property.View.Below("CLIPPED").Key(), property.View.Below("DROPPED").Key()}

// enterOrLeave is such an event as print writes it: its location, its time, the region's name.
var enterOrLeave = regexp.MustCompile(`^(ENTER|LEAVE) +(\d+) +(\d+)  Region: "(.*)" <`)

// A view for Scalasca has the times of the native archive. What it has clipped or left out it counts; then times are
// not compared.
func readViewed(f figures, name string, outputs map[string][]byte) error {
	calls, times, begins := make(map[string]float64), make(map[string]float64), make(map[string]int64)
	property := ""
	for line := range strings.Lines(string(outputs[""])) {
		if name, is := strings.CutPrefix(line, "Property name "); is {
			property = strings.TrimSpace(name)
		} else if value, is := strings.CutPrefix(line, "Property value "); is && slices.Contains(altered, property) &&
			strings.TrimSpace(value) != "0" {
			return nil
		}
		m := enterOrLeave.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		time, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return err
		}
		region := strings.TrimSuffix(strings.TrimPrefix(m[4], "nccl"), " (times not comparable)")
		operation, kernel := strings.CutSuffix(region, " kernel")
		if kernel && facts.IsMessage(operation) {
			region = operation // it has the time; messages are posted in no time before
		} else if facts.IsMessage(region) {
			continue
		}
		switch {
		case region == m[4]: // not NCCL's
		case m[1] == "ENTER":
			begins[m[2]] = time
		default:
			calls[region]++
			times[region] += float64(time - begins[m[2]])
		}
	}
	for operation, n := range calls {
		f.add(name, shownAlone(operation, n), times[operation])
	}
	return nil
}

// The form of nccl-tests has the report's rows, out of place and in place side by side.
func readNCCLTests(f figures, name string, outputs map[string][]byte) error {
	var r struct {
		NCCLTests struct{ Tests []bandwidth.Test } `json:"nccl_tests"`
	}
	if err := decode(outputs, &r); err != nil {
		return err
	}
	in, out := true, false
	rows := make(map[kind][]*bandwidth.Side)
	for i := range r.NCCLTests.Tests {
		t := &r.NCCLTests.Tests[i]
		for j := range t.Rows {
			row := &t.Rows[j]
			k := kind{
				comm: t.Communicator, operation: t.Operation, datatype: row.Datatype, size: row.Size,
				source: t.TimingSource, grouped: t.Grouped,
				replayed: t.Replayed, equal: t.Equal, root: -1, algorithm: row.Algorithm, protocol: row.Protocol,
				variant: row.Variant,
			}
			if row.Root != nil {
				k.root = *row.Root
			}
			for _, side := range []struct {
				place *bool
				*bandwidth.Side
			}{{nil, row.Unknown}, {&in, row.InPlace}, {&out, row.OutOfPlace}} {
				if k.inPlace = placeOf(side.place); side.Side != nil {
					rows[k] = append(rows[k], side.Side)
				}
			}
		}
	}
	for k, all := range rows {
		if len(all) > 1 { // with buffers of devices and without
			continue
		}
		s, key := all[0], k.String()
		f.add(name, key+": operations", float64(s.Operations))
		f.add(name, key+": timed", float64(s.Timed))
		if s.Approximate {
			continue
		}
		f.side(name, s.Avg, key+": p50", key+": algbw", key+": busbw")
		f.side(name, s.NobodyLate, key+": nobody late", key+": algbw, nobody late", key+": busbw, nobody late")
		f.side(name, s.Min, key+": fastest member")
		f.side(name, s.Max, key+": slowest member")
		f.side(name, s.Rank0, key+": rank 0")
	}
	return nil
}

// side notes a time and, if they are named, its bandwidths.
func (f figures) side(product string, of *bandwidth.Figure, time string, bandwidths ...string) {
	if of == nil {
		return
	}
	f.add(product, time, of.Time)
	if len(bandwidths) > 0 && of.AlgBW > 0 {
		f.add(product, bandwidths[0], of.AlgBW)
		f.add(product, bandwidths[1], of.BusBW)
	}
}
