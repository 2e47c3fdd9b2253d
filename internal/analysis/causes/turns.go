// SPDX-License-Identifier: Apache-2.0

package causes

// Ranks that share a GPU. It runs processes in turns, unless something lets them run together (MPS, which no archive
// tells): what a rank is late for the turns of others is not by its own doing, nor is it that of the others.

// longestTurn is how long one process may have a GPU before it is another one's turn, ns: those of an H200 (driver 580)
// took 2.0 to 2.4 ms, and others may be somewhat longer. NVIDIA gives no figure; who has had the driver make them
// longer (nvidia-smi compute-policy --set-timeslice) has longer waits for them.
const longestTurn = 3e6

// Cycle is how long a rank may wait for the turns of so many others on its GPU, each other one's once, ns.
func Cycle(others int) float64 { return float64(others) * longestTurn }

// Sharing is how many other ranks work on a rank's GPU at the same time, by rank of the world; nil: no GPU is shared.
type Sharing []int

// NewSharing makes it for a number of ranks, of those that share each GPU.
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

// turn is what of so many ns that a rank's GPU was late the turns of the others may have been: each other one's once.
func (s Sharing) turn(rank int32, ns float64) float64 {
	if rank < 0 || int(rank) >= len(s) {
		return 0
	}
	return min(ns, Cycle(s[rank]))
}

// Explains reports whether a rank's GPU can have been late by so many ns as it was the others' turn so many times: each
// other one's once each time.
func (s Sharing) Explains(rank int, ns float64, times uint64) bool {
	return rank >= 0 && rank < len(s) && s[rank] > 0 && ns <= Cycle(s[rank])*float64(times)
}

// InTurns tells the engine which ranks share GPUs.
func (e *Engine) InTurns(s Sharing) { e.sharing = s }

// turns makes what a rank's GPU was late the turns of others, if they explain it as they came so many times.
func (e *Engine) turns(rank int32, kind Kind, ns float64, times uint64) Kind {
	if e.sharing.Explains(int(rank), abs(ns), times) {
		return Turns
	}
	return kind
}

// since is how many parts a rank has begun after it came to the last operation of both.
func (p *party) since() uint64 { return uint64(max(1, p.Seq-min(p.Seq, p.met.seq))) }

// hops is how often what a rank's operations transfer may have waited for turns: data goes from one rank on the GPU to
// the next, and each hop may wait.
func (e *Engine) hops(p *party) uint64 {
	if e.sharing == nil {
		return 0
	}
	return p.since() * uint64(e.sharing[p.Rank])
}
