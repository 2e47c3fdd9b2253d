// SPDX-License-Identifier: Apache-2.0

package answers

// moment is a point in a job's time, as a number in its timing.
type moment int32

// never is the value of moments that do not come: of a job that hangs.
const never = int64(-1)

// timing works out when the moments of a job are: each comes a certain time after the last of those that it waits for.
// What waits for itself, or for what does not come, never comes.
type timing struct {
	at     []int64 // ns from the job's begin; of moments not yet known the latest so far
	open   []int32 // how many each still waits for
	next   [][]following
	meets  map[moment]func() // what is worked out when a moment is known: times of moments that settle sets
	queued []moment
}

type following struct {
	moment moment
	delay  int64
}

// moment makes a moment that comes delay after each of those named; without any it is delay after the job's begin.
func (t *timing) moment(delay int64, after ...moment) moment {
	m := moment(len(t.at))
	t.at, t.open, t.next = append(t.at, 0), append(t.open, 0), append(t.next, nil)
	if len(after) == 0 {
		t.at[m] = delay
	}
	for _, a := range after {
		t.follow(m, a, delay)
	}
	return m
}

// follow makes a moment come at least delay after another one.
func (t *timing) follow(m, after moment, delay int64) {
	t.next[after] = append(t.next[after], following{m, delay})
	t.open[m]++
}

// held makes a moment that comes when settle says so.
func (t *timing) held() moment {
	m := t.moment(0)
	t.open[m] = 1
	return m
}

// meet has f called when a moment is known.
func (t *timing) meet(m moment, f func()) {
	if t.meets == nil {
		t.meets = make(map[moment]func())
	}
	t.meets[m] = f
}

// settle sets when a held moment is.
func (t *timing) settle(m moment, at int64) {
	t.at[m], t.open[m] = at, 0
	t.queued = append(t.queued, m)
}

// run works all moments out.
func (t *timing) run() {
	for m := range t.open {
		if t.open[m] == 0 {
			t.queued = append(t.queued, moment(m))
		}
	}
	for len(t.queued) > 0 {
		m := t.queued[len(t.queued)-1]
		t.queued = t.queued[:len(t.queued)-1]
		for _, f := range t.next[m] {
			t.at[f.moment] = max(t.at[f.moment], t.at[m]+f.delay)
			if t.open[f.moment]--; t.open[f.moment] == 0 {
				t.queued = append(t.queued, f.moment)
			}
		}
		if f := t.meets[m]; f != nil {
			f()
		}
	}
	for m := range t.open {
		if t.open[m] > 0 {
			t.at[m] = never
		}
	}
}
