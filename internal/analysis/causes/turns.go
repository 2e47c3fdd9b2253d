// SPDX-License-Identifier: Apache-2.0

package causes

// Ranks that share a GPU. The GPU runs their processes in turns, unless they can run concurrently (MPS, which no
// archive shows). A rank that is late because of the others' turns is not late by its own doing, nor is it the others'
// fault.

// longestTurn is how long one process may have a GPU before another one's turn, in ns. Turns on an H200 (driver 580)
// took 2.0 to 2.4 ms; other GPUs may have somewhat longer ones. NVIDIA publishes no figure. If the driver is set to
// longer turns (nvidia-smi compute-policy --set-timeslice), the waits are longer as well.
const longestTurn = 3e6

// Cycle returns how long, in ns, a rank may wait for one turn of each of the others on its GPU.
func Cycle(others int) float64 { return float64(others) * longestTurn }

// Sharing is the number of other ranks that work on a rank's GPU at the same time, by rank of the world; nil: no GPU
// is shared.
type Sharing []int

// NewSharing returns the Sharing of a number of ranks; gpus lists the ranks on each shared GPU.
func NewSharing(ranks int, gpus [][]int) Sharing {
	if len(gpus) == 0 {
		return nil
	}
	s := make(Sharing, ranks)
	for _, on := range gpus {
		for _, rank := range on {
			s[rank] = len(on) - 1
		}
	}
	return s
}

// shares reports whether others work on a rank's GPU.
func (s Sharing) shares(rank int32) bool { return rank >= 0 && int(rank) < len(s) && s[rank] > 0 }

// turn returns the part of a GPU's lateness in ns that one turn of each of the others may explain.
func (s Sharing) turn(rank int32, ns float64) float64 {
	if rank < 0 || int(rank) >= len(s) {
		return 0
	}
	return min(ns, Cycle(s[rank]))
}

// Explains reports whether the others' turns can explain a GPU's lateness in ns, if each of them had one turn on each
// of a number of times.
func (s Sharing) Explains(rank int, ns float64, times uint64) bool {
	return rank >= 0 && rank < len(s) && s[rank] > 0 && ns <= Cycle(s[rank])*float64(times)
}

// SetGPUSharing sets which ranks share GPUs.
func (e *Engine) SetGPUSharing(s Sharing) { e.sharing = s }

// turns returns kind Turns instead of kind if the others' turns on a number of times explain the lateness of a rank's
// GPU.
func (e *Engine) turns(rank int32, kind Kind, ns float64, times uint64) Kind {
	if e.sharing.Explains(int(rank), abs(ns), times) {
		return Turns
	}
	return kind
}

// since returns how many parts a rank has begun since the previous common operation.
func (p *party) since() uint64 { return uint64(max(1, p.Seq-min(p.Seq, p.met.seq))) }

// hops returns how often the transfers of a rank's operations may have waited for turns: data goes from one rank on
// the GPU to the next, and each hop may wait.
func (e *Engine) hops(p *party) uint64 {
	if e.sharing == nil {
		return 0
	}
	return p.since() * uint64(e.sharing[p.Rank])
}
