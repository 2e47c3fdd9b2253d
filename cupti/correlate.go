// SPDX-License-Identifier: Apache-2.0

package cupti

// Outcome is the fate of an activity that was to be linked to an external id.
type Outcome uint8

// Outcomes.
const (
	Linked      Outcome = iota
	NoExternal          // its API call is known, and had no id
	NoCall              // its id is known, but not the API call; or it names none
	Aged                // neither came in time, or there was no room to wait longer
	Implausible         // the id cannot be that of this call, see Verdict
	Ambiguous           // its correlation id stands for several calls or ids
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"linked", "no external id", "no API call", "aged out", "implausible",
	"ambiguous"}

// String is the outcome in a word or two.
func (o Outcome) String() string { return outcomeNames[o] }

// Call is an API call as far as a Judge needs it. A call of the runtime and the driver's within it share a
// correlation id, and are one here. Times are CUPTI's.
type Call struct {
	Thread     uint32
	Start, End uint64
}

// Verdict is the result of a Judge.
type Verdict uint8

// Verdicts.
const (
	Wait Verdict = iota // not certain yet
	Sound
	Unsound
)

// Judge reports whether an API call was made under an external id. An id can stay on a thread's stack by mistake, and
// is then given to calls that have nothing to do with it.
type Judge func(id uint64, call *Call) Verdict

// CorrelatorOptions of a Correlator; nil means the defaults. Times are those of the now arguments (ns).
type CorrelatorOptions struct {
	Age  uint64 // how long calls without ids, ids without calls, and activities wait. Default 5 s
	Keep uint64 // how long a call with an id is kept for its activities, which run much later. Default 600 s
	Most int    // of either, beyond which the oldest go. Default 65536
}

// Correlator joins activities on the GPU, which know the correlation id of the API call that caused them, with that
// call and with the external id that the calling thread had pushed, which comes as a third record. The three come in
// any order. A call may have many activities (a graph's), and activities may come long after their call.
//
// Correlation ids are 32 bits wide and wrap around: nothing is kept so long that one could come back, and an id that
// is used twice all the same links nothing.
type Correlator[T any] struct {
	opts    CorrelatorOptions
	judge   Judge
	done    func(activity T, o Outcome, id uint64)
	entries map[uint32]*correlation[T]
	young   []*correlation[T] // in order of their first records
	old     []*correlation[T] // calls with ids, older than Age; in the same order
	unsure  map[*correlation[T]]struct{}

	// Counts are the activities by outcome.
	Counts [NumOutcomes]uint64
	// Idle counts calls with ids that no activity came for: captured into graphs, failed, or still to run.
	Idle uint64
}

// correlation is the state of one correlation id.
type correlation[T any] struct {
	number     uint32
	born       uint64
	call       Call
	called     bool
	id         uint64
	identified bool
	ambiguous  bool
	verdict    Verdict
	used       bool // an activity has come
	waiting    []T
}

// NewCorrelator makes a correlator that reports each activity once through done, with the id if it was linked.
func NewCorrelator[T any](opts *CorrelatorOptions, judge Judge,
	done func(activity T, o Outcome, id uint64)) *Correlator[T] {
	c := &Correlator[T]{
		judge: judge, done: done,
		entries: make(map[uint32]*correlation[T]), unsure: make(map[*correlation[T]]struct{}),
	}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.Age == 0 {
		c.opts.Age = 5e9
	}
	if c.opts.Keep == 0 {
		c.opts.Keep = 600e9
	}
	if c.opts.Most == 0 {
		c.opts.Most = 65536
	}
	return c
}

// API takes an API call.
func (c *Correlator[T]) API(a *API, now uint64) {
	e := c.entry(a.Correlation, now)
	if e == nil {
		return
	}
	switch {
	case !e.called:
		e.call, e.called = Call{a.Thread, a.Start, a.End}, true
	case a.Thread == e.call.Thread && a.Start >= e.call.Start && a.End <= e.call.End:
	case a.Thread == e.call.Thread && a.Start <= e.call.Start && a.End >= e.call.End:
		e.call.Start, e.call.End = a.Start, a.End
	default:
		e.ambiguous = true
	}
	c.reportCertain(e)
}

// External takes an external id.
func (c *Correlator[T]) External(x *External, now uint64) {
	e := c.entry(x.Correlation, now)
	if e == nil {
		return
	}
	if e.identified && e.id != x.ID {
		e.ambiguous = true
	}
	e.id, e.identified = x.ID, true
	c.reportCertain(e)
}

// Activity takes an activity. It is reported at once if its call and id have come.
func (c *Correlator[T]) Activity(number uint32, activity T, now uint64) {
	e := c.entry(number, now)
	if e == nil {
		c.report(activity, NoCall, 0)
		return
	}
	e.used = true
	e.waiting = append(e.waiting, activity)
	c.reportCertain(e)
}

// Identified reports whether an external id has come for a correlation id.
func (c *Correlator[T]) Identified(number uint32) bool {
	e := c.entries[number]
	return e != nil && e.identified
}

// entry finds or adds the state of a correlation id; nil for 0, which is none.
func (c *Correlator[T]) entry(number uint32, now uint64) *correlation[T] {
	if number == 0 {
		return nil
	}
	e := c.entries[number]
	if e == nil {
		if len(c.young) >= c.opts.Most {
			c.leaveYoung()
		}
		e = &correlation[T]{number: number, born: now}
		c.entries[number] = e
		c.young = append(c.young, e)
	}
	return e
}

// reportCertain reports what is certain by now.
func (c *Correlator[T]) reportCertain(e *correlation[T]) {
	switch {
	case e.ambiguous:
		c.reportAll(e, Ambiguous)
	case !e.called || !e.identified:
	default:
		if e.verdict == Wait {
			e.verdict = c.judge(e.id, &e.call)
		}
		switch {
		case e.verdict == Sound:
			c.reportAll(e, Linked)
		case e.verdict == Unsound:
			c.reportAll(e, Implausible)
		case len(e.waiting) > 0:
			c.unsure[e] = struct{}{}
			return
		}
	}
	delete(c.unsure, e)
}

func (c *Correlator[T]) reportAll(e *correlation[T], o Outcome) {
	for _, a := range e.waiting {
		c.report(a, o, e.id)
	}
	e.waiting = nil
}

func (c *Correlator[T]) report(activity T, o Outcome, id uint64) {
	if o != Linked {
		id = 0
	}
	c.Counts[o]++
	c.done(activity, o, id)
}

// Expire asks again about calls that could not be judged, and gives up what has waited long enough.
func (c *Correlator[T]) Expire(now uint64) {
	for e := range c.unsure {
		c.reportCertain(e)
	}
	for len(c.young) > 0 && c.young[0].born+c.opts.Age < now {
		c.leaveYoung()
	}
	for len(c.old) > 0 && c.old[0].born+c.opts.Keep < now {
		c.leaveOld()
	}
}

// leaveYoung gives up the oldest of the young, unless it is a call with an id.
func (c *Correlator[T]) leaveYoung() {
	e := c.young[0]
	c.young[0] = nil
	c.young = c.young[1:]
	if !e.called || !e.identified || e.ambiguous {
		c.forgetCorrelation(e)
		return
	}
	if len(c.old) >= c.opts.Most {
		c.leaveOld()
	}
	c.old = append(c.old, e)
	if e.verdict == Wait {
		c.giveUp(e)
	}
}

func (c *Correlator[T]) leaveOld() {
	e := c.old[0]
	c.old[0] = nil
	c.old = c.old[1:]
	c.forgetCorrelation(e)
}

func (c *Correlator[T]) forgetCorrelation(e *correlation[T]) {
	c.giveUp(e)
	if e.called && e.identified && !e.used {
		c.Idle++
	}
	delete(c.entries, e.number)
}

// giveUp reports the activities that still wait.
func (c *Correlator[T]) giveUp(e *correlation[T]) {
	delete(c.unsure, e)
	o := Aged
	switch {
	case e.ambiguous:
		o = Ambiguous
	case e.called && e.identified:
		o = Implausible
	case e.called:
		o = NoExternal
	case e.identified:
		o = NoCall
	}
	c.reportAll(e, o)
}

// End gives up all waiting activities: no more records will come.
func (c *Correlator[T]) End() {
	for e := range c.unsure {
		c.reportCertain(e)
	}
	for len(c.young) > 0 {
		c.leaveYoung()
	}
	for len(c.old) > 0 {
		c.leaveOld()
	}
}
