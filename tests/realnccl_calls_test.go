// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// calledRank is a rank of a communicator as the driver knows it.
type calledRank struct {
	pid, worldRank, comm, rank, nranks int
	name                               string
}

// typeNames are those that NCCL tells a profiler, by ncclDataType_t; for one it has none.
var typeNames = []string{"ncclInt8", "Unknown", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16",
	"ncclFloat32", "ncclFloat64",
	"ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"}

// driverFunctions are its words for collectives, and whether a root follows the count.
var driverFunctions = map[string]struct {
	name   string
	rooted bool
}{"ar": {"AllReduce", false}, "ari": {"AllReduce", false}, "ag": {"AllGather", false}, "rs": {"ReduceScatter", false},
	"bc": {"Broadcast", true}, "rd": {"Reduce", true}}

// operationsOfCall gives the operations that NCCL makes of a call on rank me of n.
func operationsOfCall(c *suite.Call) (all []*operation, err error) {
	me, n, root, dtype := c.CommRank, c.NRanks, c.Root%max(c.NRanks, 1), typeNames[c.Type]
	bytes := c.Count * elementSize[dtype]
	if f, ok := driverFunctions[c.Op]; ok {
		o := &operation{Name: f.name, Root: -1, Count: c.Count, Datatype: dtype}
		if f.rooted {
			o.Root = int64(root)
		}
		o.Sent, o.Received = sizes(f.name, uint64(n), bytes, int(o.Root) == me)
		return []*operation{o}, nil
	}
	send := func(peer int) {
		all = append(all, &operation{Name: "Send", Root: int64(peer), Count: c.Count, Datatype: dtype, Sent: bytes})
	}
	recv := func(peer int) {
		all = append(all, &operation{Name: "Recv", Root: int64(peer), Count: c.Count, Datatype: dtype, Received: bytes})
	}
	switch c.Op {
	case "send":
		send(peerOf(c, 0))
	case "recv":
		recv(peerOf(c, 0))
	case "sr":
		send((me + 1) % n)
		recv((me + n - 1) % n)
	case "a2a", "alltoall":
		for peer := range n {
			send(peer)
			recv(peer)
		}
	case "gather", "scatter":
		one, many := send, recv
		if c.Op == "scatter" {
			one, many = recv, send
		}
		one(root)
		for peer := range n {
			if me == root {
				many(peer)
			}
		}
	case "pair":
		if from, to := peerOf(c, 0), peerOf(c, 1); me == from {
			send(to)
		} else {
			recv(from)
		}
	default:
		return nil, fmt.Errorf("call %q is not known here", c.Op)
	}
	return all, nil
}

// peerOf is an argument that names a rank, with a sign one relative to the caller's.
func peerOf(c *suite.Call, i int) int {
	v, _ := strconv.Atoi(c.Args[i])
	if strings.HasPrefix(c.Args[i], "+") || strings.HasPrefix(c.Args[i], "-") {
		v += c.CommRank
	}
	return (v + c.NRanks) % c.NRanks
}

// calls is what each rank of each communicator called, in order, by what tells sequences apart.
type calls map[calledRank]map[string][]*operation

// calledOperations lists it; what is captured comes with each replay, if these are to be in it.
func calledOperations(t *testing.T, logs map[int]*suite.Process, replays bool) calls {
	t.Helper()
	out := make(calls)
	for pid, p := range logs {
		captured := make(map[[2]int][]suite.Call) // by world rank and graph
		replayed := make(map[[2]int]bool)
		add := func(c *suite.Call) {
			key := calledRank{pid, c.WorldRank, c.Comm, c.CommRank, c.NRanks, c.CommName}
			ops := testkit.Value(operationsOfCall(c))(t)
			if out[key] == nil {
				out[key] = make(map[string][]*operation)
			}
			for _, o := range ops {
				out[key][o.sequenceKey()] = append(out[key][o.sequenceKey()], o)
			}
		}
		calls := slices.Clone(p.Calls)
		slices.SortStableFunc(calls, func(a, b suite.Call) int { return cmp.Compare(a.T0, b.T0) })
		for _, c := range calls {
			switch {
			case c.Op == "replay":
				at := [2]int{c.WorldRank, *c.Graph}
				replayed[at] = true
				for _, of := range captured[at] {
					if replays {
						add(&of)
					}
				}
			case c.NRanks < 2: // NCCL reports nothing of them
			case c.Graph != nil:
				at := [2]int{c.WorldRank, *c.Graph}
				if replayed[at] { // another graph takes the number
					captured[at], replayed[at] = nil, false
				}
				captured[at] = append(captured[at], c)
			default:
				add(&c)
			}
		}
	}
	return out
}

// row is a communicator rank's location in the archive.
type row struct {
	comm    *communicator
	process uint64 // its place
	rank    int
	device  int // that it is on, −1 if the archive does not say it
	ops     map[string][]*operation
	taken   bool
}

// processPlace is the place of a location's process in the archive's order: ids are number << 32 | place.
func processPlace(location uint64) uint64 { return location & 0xffffffff }

// archiveRows lists the rows of all communicators on which something ran.
func archiveRows(t *testing.T, got *archive) (all []*row) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(got.comms)) {
		c := got.comms[id]
		if isNetwork(c) {
			continue
		}
		for rank, loc := range c.Members {
			ops, err := got.operations(loc)
			if err != nil {
				t.Errorf("%s rank %d: %v", c.Name, rank, err)
				continue
			}
			if len(ops) > 0 {
				all = append(all, &row{comm: c, process: processPlace(loc), rank: rank, device: got.deviceOf(loc),
					ops: ops})
			}
		}
	}
	return all
}

// deviceOf is the number of the GPU that a row belongs to, −1 if it is no GPU's.
func (a *archive) deviceOf(loc uint64) int {
	_, number, _ := strings.Cut(a.groups[a.locations[loc].Group].Name, " GPU ")
	if device, err := strconv.Atoi(number); err == nil {
		return device
	}
	return -1
}

// pretendedDevices is the number of a host's devices that the driver gives its ranks in turn.
const pretendedDevices = 8

// asCalled is an operation as a call describes it.
var asCalled = cmpopts.IgnoreFields(operation{}, "Seq", "Algo", "Proto")

// devicesKnown says whether the devices of ranks have been told: of RCCL's they have not.
func devicesKnown(shards []*description.Process) bool {
	return slices.ContainsFunc(shards, func(p *description.Process) bool {
		return slices.ContainsFunc(p.GPUs, func(g description.GPU) bool { return g.Device >= 0 })
	})
}

// stamped says whether NCCL was asked for KernelCh. Where it was not, it reports no replays of graphs, unless these
// need its proxies.
func stamped(shards []*description.Process) bool {
	return slices.ContainsFunc(shards, func(p *description.Process) bool {
		return p.Masks.Event&(1<<shm.EventKernelCh) != 0
	})
}

// compareCalls wants each call of each rank in the archive once, on a communicator of its size, and nothing else. It
// returns the row of each rank.
func compareCalls(r *realRun, logs map[int]*suite.Process, got *archive) map[calledRank]*row {
	t := r.t
	t.Helper()
	direct, want := calledOperations(t, logs, false), calledOperations(t, logs, true)
	all := archiveRows(t, got)
	if !devicesKnown(r.shards) {
		for _, row := range all {
			row.device = -1
		}
	}
	out := make(map[calledRank]*row)
	order := slices.SortedFunc(maps.Keys(want), func(a, b calledRank) int {
		return cmp.Or(cmp.Compare(a.worldRank, b.worldRank), cmp.Compare(a.comm, b.comm))
	})
	for _, key := range order {
		best, diff := nearest(key, want[key], all, r.program)
		if diff != "" && !stamped(r.shards) {
			if len(direct[key]) == 0 {
				continue
			}
			best, diff = nearest(key, direct[key], all, r.program)
		}
		if best == nil {
			t.Errorf("rank %d: communicator number %d, rank %d of %d, is not in the archive", key.worldRank, key.comm,
				key.rank, key.nranks)
			continue
		}
		best.taken = true
		out[key] = best
		if diff != "" && !(r.program.Unfinished && begunBy(best.ops, want[key])) {
			t.Errorf("rank %d, communicator number %d (%s rank %d): called (−) and in the archive (+): %s\n%s",
				key.worldRank, key.comm, best.comm.Name, key.rank, counts(want[key], best.ops), diff)
		}
	}
	for _, r := range all {
		if !r.taken {
			t.Errorf("%s rank %d is in the archive, and nothing was called on it: %s", r.comm.Name, r.rank,
				counts(nil, r.ops))
		}
	}
	return out
}

// nearest finds, of the rows that can be those of a rank, the one that is most like what it called, and how it differs.
func nearest(key calledRank, want map[string][]*operation, all []*row, p *suite.Program) (best *row, diff string) {
	for _, r := range all {
		if r.taken || r.process != uint64(key.worldRank/p.RanksEach()) || r.rank != key.rank || r.device >= 0 &&
			r.device != key.worldRank%pretendedDevices || len(r.comm.Members) != key.nranks ||
			!isNamed(r.comm, key.name) {
			continue
		}
		d := gocmp.Diff(inPlansOf(r.ops, want), inPlansOf(r.ops, r.ops), asCalled,
			cmpopts.IgnoreUnexported(operation{}))
		if best == nil || len(d) < len(diff) {
			best, diff = r, d
		}
	}
	if best == nil {
		return nil, "it is not there"
	}
	return best, diff
}

// inPlansOf gives sequences with the operations that were launched at once in order of size: NCCL sorts those of a
// group by it.
func inPlansOf(shown, ops map[string][]*operation) map[string][]*operation {
	out := make(map[string][]*operation)
	for k, list := range ops {
		list, plans := slices.Clone(list), shown[k]
		for i := 0; i < len(plans); {
			j := i + 1
			for j < len(plans) && plans[j].begin == plans[i].begin && plans[j].end == plans[i].end {
				j++
			}
			slices.SortStableFunc(list[min(i, len(list)):min(j, len(list))],
				func(a, b *operation) int { return cmp.Compare(a.Count, b.Count) })
			i = j
		}
		out[k] = list
	}
	return out
}

// begunBy says whether an archive has what was called, and at most one operation more of a sequence: one that had not
// returned.
func begunBy(got, want map[string][]*operation) bool {
	for k, w := range want {
		g := got[k]
		if len(g) < len(w) || len(g) > len(w)+1 ||
			!gocmp.Equal(w, g[:len(w)], asCalled, cmpopts.IgnoreUnexported(operation{})) {
			return false
		}
	}
	return len(got) <= len(want)+1
}

// isNamed tells communicators by their name, if they have one; those of one name are numbered in the archive.
func isNamed(c *communicator, name string) bool {
	return name == "" || c.Name == name || strings.HasPrefix(c.Name, name+" #")
}

// counts says in one line how many operations of each kind there should be and are.
func counts(want, got map[string][]*operation) string {
	keys := make(map[string]bool)
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, fmt.Sprintf("%s %d/%d", k, len(got[k]), len(want[k])))
	}
	return strings.Join(out, ", ")
}
