// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
)

// joinCalls makes operations of kernels: with the arguments, the call and the launch of each. Kernels that one call
// launched are one operation.
func (t *torchTrace) joinCalls() {
	last := make(map[int64]int) // operations by the number of the call
	var nameless []int64
	for i := range t.kernels {
		k := &t.kernels[i]
		a := k.args
		call := t.calls[a.External]
		if call != nil {
			a.addFromCall(&call.args)
		}
		if a.Group == "" || a.Function == "" {
			nameless = append(nameless, k.begin)
			continue
		}
		o := profiledOperation{group: t.groupOf(&a), datatype: recorderTypes[a.Type], partner: -1, root: -1,
			begin: k.begin, end: k.end, launch: t.launches[a.Correlation], external: a.External, stream: a.Stream}
		o.function, o.elements = a.operation()
		switch o.function {
		case "Send":
			o.partner = valueOr(a.Destination, -1)
		case "Recv":
			o.partner = valueOr(a.Source, -1)
		case "Broadcast", "Reduce", "Gather", "Scatter":
			o.root = valueOr(a.Rank, -1)
		}
		if a.Number != nil {
			o.number, o.numbered = *a.Number, true
		}
		if call != nil {
			o.call = call.timeSpan
		}
		if a.External != 0 {
			if at, known := last[a.External]; known && t.operations[at].function == o.function {
				joined := &t.operations[at]
				joined.begin, joined.end = min(joined.begin, o.begin), max(joined.end, o.end)
				continue
			}
			last[a.External] = len(t.operations)
		}
		t.operations = append(t.operations, o)
	}
	t.countNameless(nameless)
	t.kernels, t.calls, t.launches, t.names = nil, nil, nil, nil
	for _, g := range t.order {
		h := fnv.New64a()
		fmt.Fprint(h, g.name, g.description, g.ranks)
		g.id = h.Sum64()
	}
	slices.SortStableFunc(t.operations, func(a, b profiledOperation) int { return cmp.Compare(a.called(), b.called()) })
}

// addFromCall adds what only the calling operation says.
func (a *torchArgs) addFromCall(call *torchArgs) {
	if a.Group == "" {
		own := *a
		*a = *call
		a.Correlation, a.Stream = own.Correlation, own.Stream
	}
	a.Rank, a.Start, a.Stride = call.Rank, call.Start, call.Stride
	a.Number = cmp.Or(a.Number, call.Number)
	a.Source, a.Destination = cmp.Or(a.Source, call.Source), cmp.Or(a.Destination, call.Destination)
}

// operation is NCCL's name of the operation, and its elements, as far as the sizes of tensors tell.
func (a *torchArgs) operation() (function string, elements uint64) {
	switch a.Function {
	case "send":
		return "Send", a.In
	case "recv":
		return "Recv", a.Out
	}
	e := recorderEntry{Name: ":" + a.Function, Inputs: recorderElements(a.In), Outputs: recorderElements(a.Out)}
	function, _, _ = e.function()
	return function, e.elements(function)
}

// groupOf returns the group of an operation.
func (t *torchTrace) groupOf(a *torchArgs) *profiledGroup {
	key := a.Group + "\x00" + a.Ranks
	g := t.groups[key]
	if g == nil {
		g = &profiledGroup{name: a.Group, description: a.Description}
		t.groups[key], t.order = g, append(t.order, g)
	}
	if g.ranks == nil {
		g.ranks = t.members(a)
	}
	return g
}

// members returns the ranks of an operation's group: as it lists them, as distributedInfo does, or from their distance.
// PyTorch shortens lists of more than 30. It returns nil if nothing says them all.
func (t *torchTrace) members(a *torchArgs) []int {
	ranks := parseRanks(a.Ranks)
	for i := range t.info.Groups {
		c := &t.info.Groups[i]
		switch {
		case ranks != nil || c.Name != a.Group || c.Size != a.Size:
		case len(c.Ranks) > 0:
			ranks = c.Ranks
		case c.Size == t.info.World: // all ranks, which newer versions do not list
			ranks = everyNth(0, 1, c.Size)
		}
	}
	if ranks == nil && a.Start != nil && a.Stride > 0 {
		ranks = everyNth(*a.Start, a.Stride, a.Size)
	}
	if len(ranks) != a.Size || t.listed+len(ranks) > maxProfileRanks {
		return nil
	}
	t.listed += len(ranks)
	return ranks
}

// everyNth returns ranks at equal distances; nil if they are impossible.
func everyNth(first, step, n int) (ranks []int) {
	if first < 0 || n < 1 || max(first, step, n) > description.MaxRanks || first+step*(n-1) >= description.MaxRanks {
		return nil
	}
	for i := range n {
		ranks = append(ranks, first+i*step)
	}
	return ranks
}
