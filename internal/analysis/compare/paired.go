// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// Statistics of the differences of pairs. The only assumption is that the differences would be symmetric about zero if
// both runs were alike, because then the two of a pair could be exchanged. The calculation is exact and uses no random
// numbers.
//
// Influences that neighbors share (a busy network, another job, operations that run concurrently) must count once. So
// the differences, in the order of time, are cut into stretches, and each stretch gives one sample, its median.
// Correlated stretches are joined, and the interval is widened by the correlation that remains. The estimate is the
// one of Hodges and Lehmann, the median of the means of all pairs of samples; its interval is the one of Wilcoxon's
// signed rank test.

const (
	// mostStretches limits the number of stretches; more would hardly add information.
	mostStretches = 64
	// correlatedFrom is the correlation of neighboring stretches, in standard errors, above which they are joined.
	correlatedFrom = 1.0
)

// shift is the distance of differences from zero.
type shift struct {
	value     float64
	low, high float64
	stretches int
}

// leastStretches is the least number of samples for which the signed rank test can be significant with a probability
// of tail on each side.
func leastStretches(tail float64) int {
	return max(1, int(math.Ceil(-math.Log2(tail))))
}

// shiftOf estimates the shift of differences that are in the order of time. The interval excludes a probability of
// tail on each side. It needs at least leastStretches(tail) differences.
func shiftOf(differences []float64, tail float64) shift {
	least := leastStretches(tail)
	n := min(len(differences), max(mostStretches, least))
	for {
		samples := stretchMedians(differences, n)
		// The correlation of independent samples is 1/n too low on average.
		r := correlation(samples) + 1/float64(n)
		if next := max(n/2, least); r*math.Sqrt(float64(n)) > correlatedFrom && next < n {
			n = next
			continue
		}
		s := signedRank(samples, tail)
		if r > 0 {
			// The variance of the mean is as if there were fewer samples by this factor. The interval is widened by
			// the factor itself rather than by its root, because r is only a rough estimate.
			wider := (1 + r) / max(1-r, 1e-3)
			s.low, s.high = s.value-wider*(s.value-s.low), s.value+wider*(s.high-s.value)
		}
		return s
	}
}

// stretchMedians cuts all into n stretches and returns their medians.
func stretchMedians(all []float64, n int) []float64 {
	medians := make([]float64, n)
	var work []float64
	for i := range medians {
		work = append(work[:0], all[i*len(all)/n:(i+1)*len(all)/n]...)
		medians[i] = stats.Median(work)
	}
	return medians
}

// correlation returns the correlation of neighbors, 0 if all are equal. It uses ranks, so that outliers do not hide
// it.
func correlation(all []float64) float64 {
	n := len(all)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i], all[j]) })
	if n < 2 || all[order[0]] == all[order[n-1]] {
		return 0
	}
	ranks := make([]float64, n)
	for i := 0; i < n; { // equal values share the mean of their places
		j := i
		for j < n && all[order[j]] == all[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			ranks[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	mean := float64(n-1) / 2
	var with, sum float64
	for i, r := range ranks {
		sum += (r - mean) * (r - mean)
		if i > 0 {
			with += (r - mean) * (ranks[i-1] - mean)
		}
	}
	return with / sum
}

// signedRank returns the estimate of Hodges and Lehmann and its interval by the signed rank test. Equal means and
// zeros can only make the interval wider.
func signedRank(samples []float64, tail float64) shift {
	n := len(samples)
	means := make([]float64, 0, n*(n+1)/2)
	for i, a := range samples {
		for _, b := range samples[:i+1] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	s := shift{value: stats.Median(means), low: math.Inf(-1), high: math.Inf(1), stretches: n}
	if k := criticalRank(n, tail); k >= 0 {
		s.low, s.high = means[k], means[len(means)-1-k]
	}
	return s
}

// criticalRank returns the greatest k with P(W ≤ k) ≤ tail, where W is the sum of the ranks of the positive ones
// among n differences of random sign; −1 if there is none.
func criticalRank(n int, tail float64) int {
	most := n * (n + 1) / 2
	p := make([]float64, most+1) // probability of each sum
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := most; sum >= 0; sum-- {
			p[sum] /= 2
			if sum >= rank {
				p[sum] += p[sum-rank] / 2
			}
		}
	}
	k, below := -1, 0.0
	for k < most && below+p[k+1] <= tail {
		k++
		below += p[k]
	}
	return k
}
