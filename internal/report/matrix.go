// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

func flowColumns(hosts, times bool) []column[matrix.Flow] {
	columns := []column[matrix.Flow]{
		label("from", "from", func(f *matrix.Flow) string { return f.From }),
		label("from_host", "host", func(f *matrix.Flow) string { return f.FromHost }),
		label("to", "to", func(f *matrix.Flow) string { return f.To }),
		label("to_host", "host", func(f *matrix.Flow) string { return f.ToHost }),
		number("transfers", "transfers", func(f *matrix.Flow) uint64 { return f.Transfers }),
		shown("bytes", "bytes", units.Bytes, func(f *matrix.Flow) uint64 { return f.Bytes }),
	}
	if hosts {
		columns[1].head, columns[3].head = "", ""
	}
	if !times {
		columns[4].head = "operations"
		return columns
	}
	return append(columns, shown("busy_ns", "busy", timeOrDash, func(f *matrix.Flow) uint64 { return f.Busy }),
		knownBandwidth("bandwidth", "GB/s", func(f *matrix.Flow) float64 { return f.Bandwidth }),
	)
}

func timeOrDash(ns uint64) string {
	if ns == 0 {
		return "–"
	}
	return units.Time(float64(ns))
}

var channelColumns = []column[matrix.ChannelFlow]{
	label("communicator", "communicator", func(c *matrix.ChannelFlow) string { return c.Communicator }),
	number("comm", "", func(c *matrix.ChannelFlow) uint64 { return uint64(c.Comm) }),
	shown("channel", "channel", numberOrUnknown, func(c *matrix.ChannelFlow) int { return c.Channel }),
	number("transfers", "transfers", func(c *matrix.ChannelFlow) uint64 { return c.Transfers }),
	shown("bytes", "bytes", units.Bytes, func(c *matrix.ChannelFlow) uint64 { return c.Bytes }),
	shown("busy_ns", "busy", timeOrDash, func(c *matrix.ChannelFlow) uint64 { return c.Busy }),
	knownBandwidth("bandwidth", "GB/s", func(c *matrix.ChannelFlow) float64 { return c.Bandwidth }),
}

type networkCell struct {
	*matrix.NetworkMatrix
	matrix.Cell
}

var networkCellColumns = []column[networkCell]{
	label("communicator", "communicator", func(c *networkCell) string { return c.Communicator }),
	number("comm", "", func(c *networkCell) uint64 { return uint64(c.Comm) }),
	{"from", "from rank", nil, func(c *networkCell) any { return c.From }},
	{"to", "to rank", nil, func(c *networkCell) any { return c.To }},
	number("transfers", "transfers", func(c *networkCell) uint64 { return c.Transfers }),
	shown("bytes", "bytes", units.Bytes, func(c *networkCell) uint64 { return c.Bytes }),
}

// maxFlows is the default number of rows of a table of pairs in text: those with the most bytes.
const maxFlows = 64

// maxGrid is the largest number of rows and columns of a matrix that the text shows as a grid.
const maxGrid = 16

// Matrix returns the communication matrix as tables.
func Matrix(r *matrix.Report) *Document {
	d := &Document{title: "Who sent how much to whom"}
	if len(r.Networks)+len(r.Nominal) == 0 {
		d.addIntro("Nothing was sent.")
	}
	for _, line := range r.Remarks {
		d.addIntro("%s", line)
	}
	flows := func(name, title string, all []matrix.Flow, hosts, times bool) {
		if grid, ok := newGrid(title, all); ok && !hosts {
			d.sheets = append(d.sheets, grid)
		}
		d.sheets = append(d.sheets, sheetOf(name, title, all, flowColumns(hosts, times)))
		d.sheets[len(d.sheets)-1].sortByBytes(func(i int) uint64 { return all[i].Bytes })
	}
	flows("ranks", "Transfers from rank to rank", r.Ranks, false, true)
	flows("hosts", "Transfers from host to host", r.Hosts, true, true)
	d.sheets = append(d.sheets, sheetOf("channels", "Transfers by channel", r.Channels, channelColumns))
	d.sheets[len(d.sheets)-1].sortByBytes(func(i int) uint64 { return r.Channels[i].Bytes })
	var cells []networkCell
	for i := range r.Networks {
		for _, c := range r.Networks[i].Cells {
			cells = append(cells, networkCell{&r.Networks[i], c})
		}
	}
	d.sheets = append(d.sheets, sheetOf("networks", "Transfers by communicator and its ranks", cells,
		networkCellColumns))
	d.sheets[len(d.sheets)-1].sortByBytes(func(i int) uint64 { return cells[i].Bytes })
	flows("nominal", "Nominal, from rank to rank", r.Nominal, false, false)
	flows("nominal_hosts", "Nominal, from host to host", r.NominalHosts, true, false)
	return d
}

// sortByBytes sorts pairs by the bytes that they exchanged, and limits their number, which can be the square of the
// number of ranks.
func (s *sheet) sortByBytes(of func(row int) uint64) {
	s.sortBy("the bytes", func(i int) float64 { return float64(of(i)) })
	s.order.bound = maxFlows
	s.optional = []string{"busy", "host", "transfers"}
}

// newGrid returns flows as a grid; ok is false if it would be too large.
func newGrid(title string, all []matrix.Flow) (sheet, bool) {
	var names []string
	index := make(map[string]int)
	for _, f := range all {
		for _, n := range []string{f.From, f.To} {
			if _, known := index[n]; !known {
				index[n] = 0
				names = append(names, n)
			}
		}
	}
	if len(names) < 2 || len(names) > maxGrid {
		return sheet{}, false
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	s := sheet{title: title + ": bytes, from the ranks on the left to those on top", heads: []string{"<"}}
	for i, n := range names {
		index[n] = i
		s.heads = append(s.heads, n)
		row := make([]string, len(names)+1)
		for k := range row {
			row[k] = "–"
		}
		row[0] = n
		s.text = append(s.text, row)
	}
	for _, f := range all {
		s.text[index[f.From]][index[f.To]+1] = units.Bytes(f.Bytes)
	}
	return s, true
}
