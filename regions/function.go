// SPDX-License-Identifier: Apache-2.0

package regions

import "ncclotf2/otf2"

// function is what the model knows of an NCCL function: one row of the table below.
type function struct {
	name   string // as NCCL's events have it
	role   otf2.RegionRole
	op     otf2.CollectiveOp
	rooted bool
	// totalSize tells that nccl-tests' size is that of all ranks' parts together, else of one; busFactor turns
	// algorithm bandwidth into bus bandwidth (doc/PERFORMANCE.md of nccl-tests).
	totalSize bool
	busFactor func(ranks float64) float64
	// bytes gives what a rank sends and receives, as Score-P counts it for the MPI namesake.
	bytes func(volume) (sent, received uint64)
}

// volume is what the sizes of a collective depend on.
type volume struct {
	perRank uint64 // bytes that each rank contributes (or gets)
	ranks   uint64
	root    bool // this rank is the root
	inPlace bool
}

func busOnce(float64) float64    { return 1 }
func busRing(n float64) float64  { return (n - 1) / n }
func busTwice(n float64) float64 { return 2 * (n - 1) / n }

func allToAll(v volume) (uint64, uint64) { return v.ranks * v.perRank, v.ranks * v.perRank }

// functions holds the collectives. Sizes follow Score-P's counting rules for the MPI operations of the
// same names; for n ranks and c bytes per rank they stand in docs/architecture.md.
var functions = map[string]*function{}

func init() {
	for _, f := range []function{
		{name: "AllReduce", busFactor: busTwice, role: otf2.RegionRoleCollAll2All, op: otf2.CollectiveOpAllreduce, bytes: allToAll},
		{name: "AllGather", totalSize: true, busFactor: busRing, role: otf2.RegionRoleCollAll2All, op: otf2.CollectiveOpAllgather, bytes: func(v volume) (uint64, uint64) {
			if v.inPlace {
				return (v.ranks - 1) * v.perRank, (v.ranks - 1) * v.perRank
			}
			return allToAll(v)
		}},
		{name: "ReduceScatter", totalSize: true, busFactor: busRing, role: otf2.RegionRoleCollAll2All, op: otf2.CollectiveOpReduceScatterBlock, bytes: allToAll},
		{name: "AlltoAll", totalSize: true, busFactor: busRing, role: otf2.RegionRoleCollAll2All, op: otf2.CollectiveOpAlltoall, bytes: allToAll},
		{name: "Broadcast", busFactor: busOnce, role: otf2.RegionRoleCollOne2All, op: otf2.CollectiveOpBcast, rooted: true, bytes: func(v volume) (uint64, uint64) {
			if v.root {
				return v.ranks * v.perRank, v.perRank
			}
			return 0, v.perRank
		}},
		{name: "Scatter", totalSize: true, busFactor: busRing, role: otf2.RegionRoleCollOne2All, op: otf2.CollectiveOpScatter, rooted: true, bytes: func(v volume) (uint64, uint64) {
			if v.root {
				return v.ranks * v.perRank, v.perRank
			}
			return 0, v.perRank
		}},
		{name: "Reduce", busFactor: busOnce, role: otf2.RegionRoleCollAll2One, op: otf2.CollectiveOpReduce, rooted: true, bytes: func(v volume) (uint64, uint64) {
			if v.root {
				return v.perRank, v.ranks * v.perRank
			}
			return v.perRank, 0
		}},
		{name: "Gather", totalSize: true, busFactor: busRing, role: otf2.RegionRoleCollAll2One, op: otf2.CollectiveOpGather, rooted: true, bytes: func(v volume) (uint64, uint64) {
			if v.root {
				return v.perRank, v.ranks * v.perRank
			}
			return v.perRank, 0
		}},
	} {
		functions[f.name] = &f
	}
}

// datatypeSize is the size in bytes of an element of NCCL's datatype; 0 if the name is not known.
// "Unknown" is what NCCL prints for ncclUint8 (NCCL src/misc/utils.cc has no case for it).
func datatypeSize(name string) uint64 {
	switch name {
	case "ncclInt8", "ncclUint8", "ncclFloat8e4m3", "ncclFloat8e5m2", "Unknown":
		return 1
	case "ncclFloat16", "ncclBfloat16":
		return 2
	case "ncclInt32", "ncclUint32", "ncclFloat32":
		return 4
	case "ncclInt64", "ncclUint64", "ncclFloat64":
		return 8
	}
	return 0
}
