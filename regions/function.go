// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// NCCL's functions: their counterparts in OTF2, and how bytes are counted. Sizes are those of nccl-tests
// (doc/PERFORMANCE.md there); sent and received bytes are Score-P's for the MPI operation of the same name.

// Collective describes one of NCCL's collectives: one row of the table below.
type Collective struct {
	Name string // as NCCL's events have it
	Op   otf2.CollectiveOp
	Role otf2.RegionRole // determines whose bytes count
	// InPlace is set if a rank's own share is not counted when its send buffer is its part of the receive buffer.
	InPlace bool
	// totalSize is set if nccl-tests' size is that of all ranks' shares together instead of one share; busFactor turns
	// algorithm bandwidth into bus bandwidth (doc/PERFORMANCE.md of nccl-tests).
	totalSize bool
	busFactor func(ranks float64) float64
	// Reduces is set if the collective computes with values: members must agree in the datatype, not only in bytes.
	Reduces bool
	buffers func(send, recv, part uint64) bool // reports whether buffers are in place; nil: NCCL does not define it
}

// In place, as NCCL's documentation defines it: both buffers begin at one address, or the rank's part begins
// rank × part bytes after the start of the whole.
func oneBuffer(send, recv, _ uint64) bool         { return send == recv }
func partIsReceived(send, recv, part uint64) bool { return send == recv+part }
func partIsSent(send, recv, part uint64) bool     { return recv == send+part }

func busOnce(float64) float64    { return 1 }
func busRing(n float64) float64  { return (n - 1) / n }
func busTwice(n float64) float64 { return 2 * (n - 1) / n }

// Collectives are all of NCCL's collectives.
var Collectives = []Collective{
	{Name: "AllReduce", Op: otf2.CollectiveOpAllreduce, Role: otf2.RegionRoleCollAll2All, busFactor: busTwice,
		buffers: oneBuffer, Reduces: true},
	{Name: "AllGather", Op: otf2.CollectiveOpAllgather, Role: otf2.RegionRoleCollAll2All, busFactor: busRing,
		totalSize: true, InPlace: true, buffers: partIsReceived},
	{Name: "ReduceScatter", Op: otf2.CollectiveOpReduceScatterBlock, Role: otf2.RegionRoleCollAll2All,
		busFactor: busRing, totalSize: true, buffers: partIsSent, Reduces: true},
	{Name: "AlltoAll", Op: otf2.CollectiveOpAlltoall, Role: otf2.RegionRoleCollAll2All, busFactor: busRing,
		totalSize: true},
	{Name: "Broadcast", Op: otf2.CollectiveOpBcast, Role: otf2.RegionRoleCollOne2All, busFactor: busOnce,
		buffers: oneBuffer},
	{Name: "Scatter", Op: otf2.CollectiveOpScatter, Role: otf2.RegionRoleCollOne2All, busFactor: busRing,
		totalSize: true},
	{Name: "Reduce", Op: otf2.CollectiveOpReduce, Role: otf2.RegionRoleCollAll2One, busFactor: busOnce,
		buffers: oneBuffer, Reduces: true},
	{Name: "Gather", Op: otf2.CollectiveOpGather, Role: otf2.RegionRoleCollAll2One, busFactor: busRing,
		totalSize: true},
}

var collectivesByName = make(map[string]*Collective)

func init() {
	for i := range Collectives {
		collectivesByName[Collectives[i].Name] = &Collectives[i]
	}
}

// CollectiveNamed returns the collective with NCCL's name for it; nil for other functions.
func CollectiveNamed(name string) *Collective { return collectivesByName[name] }

// roleOf returns the role of the regions of a function, which may be unknown.
func roleOf(name string, p2p bool) otf2.RegionRole {
	f := collectivesByName[name]
	switch {
	case f != nil:
		return f.Role
	case p2p:
		return otf2.RegionRolePoint2Point
	}
	return otf2.RegionRoleCollOther
}

// CollectiveOf returns the collective with OTF2's number for it; nil if NCCL does not have it.
func CollectiveOf(op otf2.CollectiveOp) *Collective {
	for i := range Collectives {
		if Collectives[i].Op == op {
			return &Collectives[i]
		}
	}
	return nil
}

// Rooted reports whether one rank is the root.
func (c *Collective) Rooted() bool {
	return c.Role == otf2.RegionRoleCollOne2All || c.Role == otf2.RegionRoleCollAll2One
}

// Bytes returns what a member sends and receives if each rank contributes (or gets) share bytes, as Score-P counts it
// for the MPI operation of the same name; docs/internals.md has the formulas.
func (c *Collective) Bytes(share, ranks uint64, root bool) (sent, received uint64) {
	all := ranks * share
	switch {
	case !c.Rooted():
		return all, all
	case c.Role == otf2.RegionRoleCollOne2All && root:
		return all, share
	case c.Role == otf2.RegionRoleCollOne2All:
		return 0, share
	case root:
		return share, all
	}
	return share, 0
}

// Shares lists the shares in bytes per rank that fit a member's sent and received bytes: none if they fit no such
// operation, two if it may have been in place or not.
func (c *Collective) Shares(sent, received, ranks uint64, root bool) []uint64 {
	share := sent
	switch c.Role {
	case otf2.RegionRoleCollOne2All:
		share = received
	case otf2.RegionRoleCollAll2All:
		share = sent / ranks
	}
	var fits []uint64
	if s, r := c.Bytes(share, ranks, root); s == sent && r == received {
		fits = append(fits, share)
	}
	if others := ranks - 1; c.InPlace && others > 0 && sent == received && sent%others == 0 &&
		(sent > 0 || len(fits) == 0) {
		fits = append(fits, sent/others)
	}
	return fits
}

// Size returns nccl-tests' size of the operation from the bytes per rank.
func (c *Collective) Size(share, ranks uint64) uint64 {
	if c.totalSize {
		return share * ranks
	}
	return share
}

// Share returns the bytes per rank of an operation of a size.
func (c *Collective) Share(size, ranks uint64) uint64 {
	if c.totalSize {
		return size / max(ranks, 1)
	}
	return size
}

// BusFactor turns algorithm bandwidth into bus bandwidth.
func (c *Collective) BusFactor(ranks float64) float64 { return c.busFactor(ranks) }

// SameBuffer reports whether a rank's buffers are the same, from their addresses and the bytes of each rank's share.
// known is false where an address or the share is unknown (0), or NCCL does not define it.
func (c *Collective) SameBuffer(send, recv, share uint64, rank int) (same, known bool) {
	if c.buffers == nil || send == 0 || recv == 0 || c.totalSize && share == 0 {
		return false, false
	}
	return c.buffers(send, recv, uint64(rank)*share), true
}

// DatatypeSize returns the size in bytes of an element of NCCL's datatype; 0 for an unknown name. NCCL prints "Unknown"
// for ncclUint8 (NCCL src/misc/utils.cc has no case for it).
func DatatypeSize(name string) uint64 {
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
