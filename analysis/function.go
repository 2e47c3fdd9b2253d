// SPDX-License-Identifier: Apache-2.0

package analysis

import "ncclotf2/otf2"

// collective is what analyses know of a collective operation: one row of the table below.
type collective struct {
	op   otf2.CollectiveOp
	name string // NCCL's
	// sizes gives what a member sends and receives if each rank contributes (or gets) share bytes:
	// Score-P's counting for MPI, which the timeline model follows.
	sizes func(share, ranks uint64, root bool) (sent, received uint64)
	// fromReceived tells that the share stands in what is received; else it is what is sent, over
	// ranks where everybody counts everybody's.
	fromReceived, overRanks bool
	// inPlace tells that a rank's own share is not counted if send and receive buffer are one.
	inPlace bool
	// size gives what nccl-tests calls the size of the operation, from the bytes per rank.
	size func(share, ranks uint64) uint64
	// factor turns algorithm bandwidth into bus bandwidth (nccl-tests, doc/PERFORMANCE.md).
	factor func(n float64) float64
}

func one(float64) float64            { return 1 }
func ring(n float64) float64         { return (n - 1) / n }
func ringTwice(n float64) float64    { return 2 * (n - 1) / n }
func perRank(share, _ uint64) uint64 { return share }
func total(share, n uint64) uint64   { return share * n }

func allToAll(share, n uint64, _ bool) (uint64, uint64) { return n * share, n * share }

func oneToAll(share, n uint64, root bool) (uint64, uint64) {
	if root {
		return n * share, share
	}
	return 0, share
}

func allToOne(share, n uint64, root bool) (uint64, uint64) {
	if root {
		return share, n * share
	}
	return share, 0
}

var collectives = []collective{
	{op: otf2.CollectiveOpAllreduce, name: "AllReduce", sizes: allToAll, overRanks: true, size: perRank, factor: ringTwice},
	{op: otf2.CollectiveOpAllgather, name: "AllGather", sizes: allToAll, overRanks: true, inPlace: true, size: total, factor: ring},
	{op: otf2.CollectiveOpReduceScatterBlock, name: "ReduceScatter", sizes: allToAll, overRanks: true, size: total, factor: ring},
	{op: otf2.CollectiveOpAlltoall, name: "AlltoAll", sizes: allToAll, overRanks: true, size: total, factor: ring},
	{op: otf2.CollectiveOpBcast, name: "Broadcast", sizes: oneToAll, fromReceived: true, size: perRank, factor: one},
	{op: otf2.CollectiveOpScatter, name: "Scatter", sizes: oneToAll, fromReceived: true, size: total, factor: ring},
	{op: otf2.CollectiveOpReduce, name: "Reduce", sizes: allToOne, size: perRank, factor: one},
	{op: otf2.CollectiveOpGather, name: "Gather", sizes: allToOne, size: total, factor: ring},
}

// shares lists the bytes per rank that fit a member's sizes: none if the sizes are not those of such
// an operation, two if it may have been in place or not.
func (c *collective) shares(sent, received, ranks uint64, root bool) []uint64 {
	share := sent
	switch {
	case c.fromReceived:
		share = received
	case c.overRanks:
		share = sent / ranks
	}
	var fits []uint64
	if s, r := c.sizes(share, ranks, root); s == sent && r == received {
		fits = append(fits, share)
	}
	if others := ranks - 1; c.inPlace && others > 0 && sent == received && sent%others == 0 && (sent > 0 || len(fits) == 0) {
		fits = append(fits, sent/others)
	}
	return fits
}

// collectiveOf returns the row of an operation; others than NCCL's have no sizes to compare.
func collectiveOf(op otf2.CollectiveOp) *collective {
	for i := range collectives {
		if collectives[i].op == op {
			return &collectives[i]
		}
	}
	return nil
}

// functionName names an operation as NCCL does, others as OTF2 does.
func functionName(op otf2.CollectiveOp) string {
	if c := collectiveOf(op); c != nil {
		return c.name
	}
	return op.String()
}

// datatypeSizes are the sizes in bytes of NCCL's element types (nccl.h).
var datatypeSizes = map[string]uint64{
	"ncclInt8": 1, "ncclUint8": 1, "ncclFloat8e4m3": 1, "ncclFloat8e5m2": 1,
	"ncclFloat16": 2, "ncclBfloat16": 2,
	"ncclInt32": 4, "ncclUint32": 4, "ncclFloat32": 4,
	"ncclInt64": 8, "ncclUint64": 8, "ncclFloat64": 8,
}
