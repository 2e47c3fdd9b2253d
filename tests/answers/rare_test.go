// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// rarePlans are jobs in which ranks are late a few times only.
var rarePlans = []plan{
	{"three late calls at the start", 1, anyShape, false, func(m *maker) []cause {
		c := m.lateness(verdict.HostLate, 30*m.span())
		c.every, c.from, c.to = 1, 1, 4
		return []cause{c}
	}},
	{"two ranks per core", 1, anyShape, false, func(m *maker) []cause {
		m.disturb = twoPerCore
		return nil
	}},
}

// twoPerCore makes each host wait for what the other one on its core does, and seldom for a slice of time of it.
func twoPerCore(b *builder, _ int) (host, gpu int64) {
	if b.random.IntN(2) == 0 {
		host = b.host
	}
	if b.random.IntN(60) == 0 {
		host += int64(b.random.ExpFloat64() * 5 * float64(b.host+b.kernel))
	}
	return host, 0
}

const firstRare = 4_000_000

var timesSaid = regexp.MustCompile(`(\d+) of \d+ times|; (\d+) times before other calls`)

// Nobody is named for fewer occasions than make a habit, however much they cost.
func TestFewOccasions(t *testing.T) {
	for number := range 24 {
		p := &rarePlans[number%len(rarePlans)]
		j := makeJob(*seedFlag, firstRare+number, p, false)
		dir := filepath.Join(t.TempDir(), "job")
		testkit.Must(t, j.record(j.play(nothing), dir, *seedFlag, nil))
		testkit.Value(unify(t, dir))(t)
		v := testkit.Value(answer(t, dir))(t)
		for i := range v.Culprits {
			c, times := &v.Culprits[i], 0
			for _, said := range timesSaid.FindAllStringSubmatch(c.Evidence, -1) {
				times += testkit.Value(strconv.Atoi(said[1] + said[2]))(t)
			}
			testkit.Check(t, times >= leastTimes, "job %d, %s, %s: %s", number, p.name, j.shape, v.Text)
		}
	}
}
