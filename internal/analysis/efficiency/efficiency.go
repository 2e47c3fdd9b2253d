// SPDX-License-Identifier: Apache-2.0

// Package efficiency says how well the ranks' time was used, after POP and TALP, by what NCCL's operations and the
// application's kernels took. docs/efficiency.md has the definitions; its formulas are those of this file.
package efficiency

// Factors are the efficiencies of ranks, 0 to 1. Of each rank that is looked at there is the time that was observed,
// and of that what was useful: outside of NCCL's operations.
//
//	load balance             = mean of useful/observed ÷ greatest useful/observed
//	communication efficiency = greatest useful/observed
//	parallel efficiency      = load balance × communication efficiency = mean of useful/observed
//	transfer efficiency      = greatest ideal/observed
//	serialization efficiency = communication efficiency ÷ transfer efficiency
//
// Ideal is what the rank would have needed if operations took no time but that in which their members come.
type Factors struct {
	LoadBalance   float64  `json:"load_balance"`
	Communication float64  `json:"communication"`
	Serialization *float64 `json:"serialization"` // null: not known
	Transfer      *float64 `json:"transfer"`      // null: not known
	Parallel      float64  `json:"parallel"`
}

// Share is a rank's part: ns.
type Share struct {
	Observed float64
	Useful   float64
	Ideal    float64 // at least Useful
}

// factorsOf gives the efficiencies of ranks; nil if nothing was observed. Without ideal times serialization and
// transfer are not known.
func factorsOf(ranks []Share, ideal bool) *Factors {
	var sum, most, best float64
	n := 0
	for _, r := range ranks {
		if r.Observed <= 0 {
			continue
		}
		n++
		useful := r.Useful / r.Observed
		sum += useful
		most = max(most, useful)
		best = max(best, useful, r.Ideal/r.Observed)
	}
	if n == 0 || most == 0 {
		return nil
	}
	f := &Factors{LoadBalance: min(sum/float64(n)/most, 1), Communication: most, Parallel: sum / float64(n)}
	if ideal {
		transfer := min(best, 1)
		serialization := most / transfer
		f.Transfer, f.Serialization = &transfer, &serialization
	}
	return f
}

// DeviceFactors are the efficiencies of GPUs, 0 to 1, where the application's kernels were recorded. Computing is the
// time in which at least one of them ran, active that in which a kernel or an operation of NCCL's ran.
//
//	load balance             = mean of computing/observed ÷ greatest computing/observed
//	communication efficiency = greatest computing/observed ÷ greatest active/observed
//	orchestration efficiency = greatest active/observed
//	parallel efficiency      = load balance × communication efficiency × orchestration efficiency = mean of computing/observed
type DeviceFactors struct {
	LoadBalance   float64 `json:"load_balance"`
	Communication float64 `json:"communication"`
	Orchestration float64 `json:"orchestration"`
	Parallel      float64 `json:"parallel"`
}

// deviceShare is a GPU's part: ns.
type deviceShare struct{ observed, computing, active float64 }

// ofDevices gives the efficiencies of GPUs; nil if no kernel was observed.
func ofDevices(gpus []deviceShare) *DeviceFactors {
	var sum, most, active float64
	n := 0
	for _, g := range gpus {
		if g.observed <= 0 {
			continue
		}
		n++
		sum += g.computing / g.observed
		most = max(most, g.computing/g.observed)
		active = max(active, g.active/g.observed)
	}
	if n == 0 || most == 0 {
		return nil
	}
	return &DeviceFactors{LoadBalance: min(sum/float64(n)/most, 1), Communication: most / active, Orchestration: active,
		Parallel: sum / float64(n)}
}
