// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// formatVersion is the version of the blocks; it only has to differ, because page and tool are built together.
const formatVersion = 3

// head is the data that the page has from the start. page/src/head.ts has the same fields.
type head struct {
	Version int    `json:"version"`
	Tool    string `json:"tool"`
	Title   string `json:"title"`
	// Time 0, ns since 1970 if the archive's clock is real time; a string because it exceeds JSON's exact integers.
	Origin     string          `json:"origin"`
	Realtime   bool            `json:"realtime"`
	Duration   uint64          `json:"duration"`
	Begin      uint64          `json:"begin"`     // of the selection; 0: everything is shown
	Selection  string          `json:"selection"` // as in flags; "": everything
	Chunk      int             `json:"chunk"`
	Leaf       int             `json:"leaf"` // bars of a node
	Categories []string        `json:"categories"`
	Regions    []headRegion    `json:"regions"`
	Attributes []headAttribute `json:"attributes"`
	Texts      map[uint64]any  `json:"texts"` // strings that attributes refer to
	Rows       []headRow       `json:"rows"`
	Lanes      []headLane      `json:"lanes"`
	Comms      []headComm      `json:"comms"`
	Functions  []string        `json:"functions"`
	WaitKinds  []string        `json:"waitKinds"`
	Ranks      []headRank      `json:"ranks"`
	Markers    []headMarker    `json:"markers"`
	Matrix     headMatrix      `json:"matrix"`
	Bandwidth  *report.Plot    `json:"bandwidth,omitempty"` // over size; nil: no curve has two sizes
	Facts      []report.Line   `json:"facts"`               // the report's summary
	Verdict    headVerdict     `json:"verdict"`
	Answer     headAnswer      `json:"answer"`
	Totals     headTotals      `json:"totals"`
	Problems   []string        `json:"problems"`
	Nodes      int             `json:"nodes"`     // block
	Instances  headSeries      `json:"instances"` // first block, and how many there are
	Metrics    headMetrics     `json:"metrics"`
	Path       *headPath       `json:"path,omitempty"`  // the critical path; nil: it is not known
	Waits      *headWaits      `json:"waits,omitempty"` // in the order of time; nil: there are no waits
	Waiting    []headWaiting   `json:"waiting,omitempty"`
	Charges    *headCharges    `json:"charges,omitempty"` // waits by the rank that caused them; nil: none
	Phases     []headPhase     `json:"phases,omitempty"`
	Blocks     any             `json:"blocks,omitempty"`
}

type headTotals struct {
	Bars        uint32 `json:"bars"`
	Operations  int    `json:"operations"` // parts of collectives, ends of messages
	Transfers   int    `json:"transfers"`
	Events      uint64 `json:"events"`
	Hosts       int    `json:"hosts"`
	Comms       int    `json:"comms"`
	Collectives uint64 `json:"collectives"` // compared for waits
	Waited      uint64 `json:"waited"`      // ns
}

type headRegion struct {
	Name     string `json:"name"`
	Category int    `json:"category"`
}

type headAttribute struct {
	ID          otf2.AttributeRef `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        string            `json:"type"`
}

type headRow struct {
	Name       string     `json:"name"`
	Kind       rowKind    `json:"kind"`
	Parent     int        `json:"parent"`
	Location   string     `json:"location,omitempty"` // a string because it may exceed JSON's exact integers
	Lanes      [2]int     `json:"lanes"`              // first lane, and the one after the last
	Cut        int        `json:"cut,omitempty"`      // regions without begin or end
	Transfers  headSeries `json:"transfers"`
	Operations headSeries `json:"operations"`
	FirstOps   []uint32   `json:"firstOps,omitempty"` // by block of operations: its first bar
}

// headSeries is a number of items in consecutive blocks.
type headSeries struct {
	Block int `json:"block"`
	Count int `json:"count"`
}

type headLane struct {
	First uint32 `json:"first"` // bar
	Count int    `json:"count"`
	Block int    `json:"block"` // blocks of bars and of notes alternate
}

type headComm struct {
	Ref     otf2.CommRef `json:"ref"` // as attributes refer to it
	Name    string       `json:"name"`
	Members []int64      `json:"members"` // rows by rank, −1: none
}

type headRank struct {
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	Row     int64    `json:"row"`
	Time    uint64   `json:"time"`             // in operations that were compared, ns
	Waited  uint64   `json:"waited"`           // of Time
	Caused  uint64   `json:"caused"`           // waiting of others for it
	Back    uint64   `json:"back"`             // waiting of others that its own delay caused
	BackBy  []uint64 `json:"backBy,omitempty"` // Back by kind of charge; nil: none
	Last    uint64   `json:"last"`             // operations in which others waited for it
	Worst   uint64   `json:"worst"`            // the longest total waiting for it in one operation
	WorstAt uint64   `json:"worstAt"`
}

type headMarker struct {
	Time     uint64 `json:"time"`
	Length   uint64 `json:"length"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Row      int64  `json:"row"`
}

// headMatrix is the traffic between ranks: transfers over the network where they were recorded, and for other
// communicators the bytes that their operations imply.
type headMatrix struct {
	Transfers []headFlow `json:"transfers"`
	Nominal   []headFlow `json:"nominal"`
	Remarks   []string   `json:"remarks"`
}

type headFlow struct {
	From  int    `json:"from"` // index into ranks, −1: not known
	To    int    `json:"to"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// plotTicks is the greatest number of sizes labeled below bandwidths; the panel has little room.
const plotTicks = 6

// headVerdict is the report's verdict on what made the ranks wait.
type headVerdict struct {
	Text      string        `json:"text"`
	StandsOut bool          `json:"stands_out"`
	Culprits  []headCulprit `json:"culprits"`
}

// headCulprit is a culprit with its places on the page.
type headCulprit struct {
	verdict.Culprit
	At   uint64 `json:"at"`   // when it cost the most
	Late uint64 `json:"late"` // its delay then, ns; 0: it is not limited to one time
}

func (d *Data) verdict() headVerdict {
	out := headVerdict{Culprits: []headCulprit{}}
	v := d.report.Verdict
	if v == nil {
		return out
	}
	out.Text, out.StandsOut = v.Text, v.StandsOut
	for _, c := range v.Culprits {
		one := headCulprit{Culprit: c}
		if w := c.Worst; w != nil {
			// times of day exceed JSON's exact integers
			one.At, one.Late, one.Worst = d.since(w.At), w.Late, nil
		}
		out.Culprits = append(out.Culprits, one)
	}
	return out
}

// orEmpty keeps an empty list from becoming null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func rowNumber(at uint32) int64 {
	if at == noRow {
		return -1
	}
	return int64(at)
}

func (d *Data) head(p *plan, o *Options) *head {
	h := &head{
		Version: formatVersion, Tool: o.Tool, Title: o.Title, Origin: fmt.Sprint(uint64(d.origin)),
		Realtime: d.defs.Clock.Resolution == 1e9 && d.origin > 1e18,
		Duration: d.duration, Begin: d.begin, Chunk: chunk, Leaf: d.layout.leaf, Categories: orEmpty(d.categories),
		Functions: orEmpty(d.functions), WaitKinds: orEmpty(d.waitKinds),
		Texts: make(map[uint64]any), Problems: orEmpty(slices.Concat(d.problems, d.notes)), Rows: []headRow{},
		Lanes: []headLane{}, Nodes: p.nodes, Instances: headSeries{p.instances, int(d.instanceCount)},
		Metrics: p.metrics, Path: p.path, Waits: p.waiting, Waiting: d.waiting(), Charges: p.charges,
		Phases: d.phasesOf(), Comms: []headComm{}, Ranks: []headRank{}, Markers: []headMarker{},
		Regions: []headRegion{}, Attributes: []headAttribute{},
	}
	d.describe(h, p)
	d.addRows(h, p)
	if s := d.selected.Describe(); s != nil {
		h.Selection = s.Text
	}
	ranks := d.addRanks(h)
	h.Matrix = headMatrix{Transfers: flowsOf(d.matrix.Ranks, ranks), Nominal: flowsOf(d.matrix.Nominal, ranks),
		Remarks: orEmpty(d.matrix.Remarks)}
	h.Verdict, h.Answer = d.verdict(), d.answer(ranks)
	if p := report.NewPlot(bandwidth.Curves(d.report.Operations), plotTicks); p.HasLine() {
		h.Bandwidth = p
	}
	h.Facts = report.SummaryLines(&d.report.Summary)
	d.totals(h)
	return h
}

// describe adds to the head the definitions that bars, notes and markers refer to.
func (d *Data) describe(h *head, p *plan) {
	for _, r := range d.regions {
		h.Regions = append(h.Regions, headRegion{r.name, r.category})
	}
	for _, a := range d.attributes {
		h.Attributes = append(h.Attributes, headAttribute{a.Self, d.defs.String(a.Name), d.defs.String(a.Description),
			a.Type.String()})
	}
	for ref := range p.texts {
		h.Texts[ref] = d.defs.String(otf2.StringRef(ref))
	}
	for _, c := range d.comms {
		one := headComm{Ref: c.ref, Name: c.name, Members: []int64{}}
		for _, m := range c.members {
			one.Members = append(one.Members, rowNumber(m))
		}
		h.Comms = append(h.Comms, one)
	}
	for _, m := range d.markers {
		h.Markers = append(h.Markers, headMarker{m.time, m.length, m.kind, m.severity.String(), m.text,
			rowNumber(m.row)})
	}
}

// addRows adds rows and their lanes to the head.
func (d *Data) addRows(h *head, p *plan) {
	for i := range d.rows {
		r := &d.rows[i]
		row := headRow{Name: r.name, Kind: r.kind, Parent: r.parent, Lanes: d.layout.lanesOf[i]}
		if b := r.bars; b != nil {
			row.Location, row.Cut, row.FirstOps = fmt.Sprint(uint64(r.location)), b.cut, p.firstOps[i]
			row.Transfers = headSeries{p.transfers[i], int(b.transferCount)}
			row.Operations = headSeries{p.operations[i], b.operations}
		}
		h.Rows = append(h.Rows, row)
	}
	for i := range d.layout.lanes {
		l := &d.layout.lanes[i]
		h.Lanes = append(h.Lanes, headLane{l.first, l.count, p.bars[i]})
	}
}

// rankName is the name of a rank, and its host.
type rankName struct{ name, host string }

// rankIndex finds ranks in the head by name.
type rankIndex map[rankName]int

// find returns the index of a rank, −1 if there is none.
func (x rankIndex) find(name, host string) int {
	if i, ok := x[rankName{name, host}]; ok {
		return i
	}
	return -1
}

// addRanks adds ranks and their waiting to the head.
func (d *Data) addRanks(h *head) rankIndex {
	index := make(rankIndex)
	at := 0 // index in the report, which has the selected ranks
	for i, r := range d.ranks {
		one := headRank{Name: r.name, Host: r.host, Row: rowNumber(r.row)}
		if w := d.report.WaitStates; d.selected.Rank(i) && at < len(w.Ranks) {
			s := &w.Ranks[at]
			at++
			one.Time, one.Waited, one.Caused, one.Last, one.Worst = s.Time, s.Waited, s.Caused, s.Last, s.MaxCaused
			one.WorstAt = d.since(s.WorstAt)
			if back := s.GoesBack; back != nil {
				one.Back = uint64(*back + 0.5)
				one.BackBy = d.backBy(i)
			}
		}
		h.Ranks = append(h.Ranks, one)
		index[rankName{r.name, r.host}] = i
	}
	return index
}

// backBy returns the waiting charged to a rank by kind of delay; nil: none.
func (d *Data) backBy(rank int) []uint64 {
	c := d.report.Causes
	if c == nil || rank >= len(c.Ranks) || c.Ranks[rank].Cost() < 0.5 {
		return nil
	}
	by := make([]float64, len(chargedKinds))
	for _, k := range causes.OwnKinds {
		by[slices.Index(chargedKinds, verdict.KindOf(k))] += c.Ranks[rank].Costs[k]
	}
	out := make([]uint64, len(by))
	for i, ns := range by {
		out[i] = uint64(ns + 0.5)
	}
	return out
}

// flowsOf returns the traffic between pairs of ranks.
func flowsOf(all []matrix.Flow, ranks rankIndex) []headFlow {
	flows := []headFlow{}
	for _, f := range all {
		from, to := ranks.find(f.From, f.FromHost), ranks.find(f.To, f.ToHost)
		flows = append(flows, headFlow{from, to, f.Transfers, f.Bytes})
	}
	return flows
}

// totals adds up what the head describes.
func (d *Data) totals(h *head) {
	h.Totals.Bars = d.layout.total
	for i := range h.Rows {
		h.Totals.Transfers += h.Rows[i].Transfers.Count
		h.Totals.Operations += h.Rows[i].Operations.Count
	}
	h.Totals.Transfers += int(d.matrix.Summed) // summed transfers are drawn on no row
	s := &d.report.Summary
	h.Totals.Hosts, h.Totals.Comms, h.Totals.Events = s.Hosts, s.Communicators, s.Events
	h.Totals.Collectives, h.Totals.Waited = d.report.WaitStates.Collectives, d.report.WaitStates.Total.Waited
}

// packed returns the head as a block.
func (h *head) packed() ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	pack(b, &out)
	return out.Bytes(), nil
}
