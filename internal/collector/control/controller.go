// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ErrNoJob is wrapped by errors about directories in which no collector is running.
var ErrNoJob = errors.New("no job is recorded in it at the moment")

// errEnded is wrapped by errors about jobs that ended before they answered.
var errEnded = errors.New("the job has ended")

// Controller sends orders to the collectors of a running job through its experiment directory. Only the user who runs
// the job can use it.
type Controller struct {
	Dir     string
	Timeout time.Duration // how long to wait for answers, in addition to the collectors' polling interval; default 5 s
	// Lead is how far ahead in time an order takes effect. All collectors must have read the order before the
	// communicator reaches the chosen operation, at the current rate of operations. Default 2 s.
	Lead time.Duration
}

// leastMargin is the minimum number of operations after which an order takes effect. Recording ends after twice as
// many, so that the end can be revoked while the communicator is idle.
const leastMargin = 10

// sampling is the time between the two readings of ordinals that give their rate.
const sampling = 500 * time.Millisecond

// Change is the result of an order.
type Change struct {
	Comms []CommChange `json:"comms"`
	// Late names processes in which a communicator had already passed the operation at which the order takes effect.
	Late []string `json:"late,omitempty"`
	// Silent names processes that did not confirm the order in time.
	Silent []string `json:"silent,omitempty"`
}

// CommChange is the new window of a communicator.
type CommChange struct {
	ID      uint64 `json:"id,string"`
	Name    string `json:"name"`
	NRanks  int    `json:"nranks"`
	Members int    `json:"members"` // communicator ranks that got the order
	First   uint64 `json:"first,string"`
	Last    uint64 `json:"last,string"`
	// Changed is the ordinal of the first operation whose recording changes.
	Changed uint64 `json:"changed,string"`
	// Mixed: operations come both from calls and from replayed graphs, whose ordinals are counted separately.
	Mixed bool `json:"mixed,omitempty"`
}

// live returns the shards that are being written.
func (c *Controller) live() ([]experiment.Entry, error) {
	entries, err := experiment.List(c.Dir)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e experiment.Entry) bool { return !collects(e) })
	if len(entries) == 0 {
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", c.Dir, ErrNoJob)
	}
	var st unix.Stat_t
	if err := unix.Stat(entries[0].Path, &st); err != nil {
		return nil, err
	}
	if int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s: the job belongs to %s: only that user can control it", c.Dir, userName(int(st.Uid)))
	}
	return entries, nil
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "user " + u.Username
	}
	return fmt.Sprintf("user %d", uid)
}

// lockPatience is how long to wait for another controller. One that only requests a status holds the lock for a few
// milliseconds.
const lockPatience = 200 * time.Millisecond

// lock prevents two controllers from using one directory at the same time.
func (c *Controller) lock(patience time.Duration) (unlock func(), err error) {
	dir, err := os.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		dir.Close()
		return nil, fmt.Errorf("%s: another command is controlling this job: try again", c.Dir)
	}
	// Without file locks, two users of one account must coordinate themselves.
	return func() { _ = flock.Unlock(dir) }, nil
}

// send writes the control file with the next number for its question. order states that it also contains a new order.
func (c *Controller) send(o *File, order bool, entries []experiment.Entry) error {
	last, err := Read(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		last = &File{}
	case err != nil:
		// The collectors refuse the present file, too. The time gives numbers that no earlier file can have had.
		last = &File{Ask: uint64(time.Now().UnixNano()), Order: uint64(time.Now().UnixNano())}
	}
	o.Version, o.Ask, o.Order = Version, last.Ask+1, last.Order
	if order {
		o.Order++
	} else {
		// Keep the previous order for processes that join the job.
		o.Windows, o.New, o.Events = last.Windows, last.New, last.Events
	}
	for _, e := range entries {
		o.Job = append(o.Job, filepath.Base(e.Path))
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(c.Dir, FileName), experiment.FileMode, append(text, '\n'),
		atomicfile.Volatile)
}

// gather waits for the answers to a question. silent names processes that did not answer in time.
func (c *Controller) gather(ctx context.Context, ask uint64, entries []experiment.Entry) (
	answers []Status, silent []string, err error) {
	deadline := time.Now().Add(cmp.Or(c.Timeout, 5*time.Second) + pollInterval(c.Dir))
	waiting := slices.Clone(entries)
	for {
		var still []experiment.Entry
		for _, e := range waiting {
			s, err := ReadStatus(e.Path)
			switch {
			case err != nil:
				return nil, nil, err
			case s != nil && s.Ask >= ask:
				answers = append(answers, *s)
			case collectorIsAlive(e.Path):
				still = append(still, e)
			}
		}
		waiting = still
		if len(waiting) == 0 || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, e := range waiting {
		silent = append(silent, processName(e))
	}
	slices.SortFunc(answers, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	return answers, silent, nil
}

func collectorIsAlive(shardPath string) bool {
	entries, err := experiment.List(filepath.Dir(filepath.Dir(shardPath)))
	return err == nil && slices.ContainsFunc(
		entries, func(e experiment.Entry) bool { return e.Path == shardPath && e.State == experiment.Writing })
}

func processName(e experiment.Entry) string {
	if p := e.Process; p != nil {
		if p.Launcher.Rank >= 0 {
			return fmt.Sprintf("rank %d (%s:%d)", p.Launcher.Rank, p.Host, p.PID)
		}
		return fmt.Sprintf("%s:%d", p.Host, p.PID)
	}
	return filepath.Base(e.Path)
}

func (s *Status) name() string {
	if s.Rank >= 0 {
		return fmt.Sprintf("rank %d (%s:%d)", s.Rank, s.Host, s.PID)
	}
	return fmt.Sprintf("%s:%d", s.Host, s.PID)
}

// Status requests the status of all collectors twice, so that the counts give rates: before and now. silent names
// processes that did not answer.
func (c *Controller) Status(ctx context.Context) (before, now []Status, silent []string, err error) {
	unlock, err := c.lock(lockPatience)
	if err != nil {
		return nil, nil, nil, err
	}
	defer unlock()
	return c.sample(ctx)
}

func (c *Controller) ask(ctx context.Context, o *File, order bool) (answers []Status, silent []string, err error) {
	entries, err := c.live()
	if err != nil {
		return nil, nil, err
	}
	if err := c.send(o, order, entries); err != nil {
		return nil, nil, err
	}
	if answers, silent, err = c.gather(ctx, o.Ask, entries); err == nil && len(answers)+len(silent) == 0 {
		err = fmt.Errorf("%s: %w", c.Dir, errEnded)
	}
	return answers, silent, err
}

func (c *Controller) sample(ctx context.Context) (before, now []Status, silent []string, err error) {
	if before, _, err = c.ask(ctx, &File{}, false); err != nil {
		return nil, nil, nil, err
	}
	select {
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	case <-time.After(sampling):
	}
	if now, silent, err = c.ask(ctx, &File{}, false); err != nil {
		return nil, nil, nil, err
	}
	return before, now, silent, nil
}

// Events orders which event types (bits) are recorded from now on. missing names the types that some process did not
// request from NCCL, and which it therefore cannot record.
func (c *Controller) Events(ctx context.Context, mask uint32) (change *Change, missing []string, err error) {
	unlock, err := c.lock(lockPatience)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	answers, silent, err := c.ask(ctx, &File{Events: &mask}, true)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range EventNames(mask) {
		if slices.ContainsFunc(answers, func(s Status) bool {
			return len(s.Asked) > 0 &&
				!slices.Contains(s.Asked, name)
		}) {
			missing = append(missing, name)
		}
	}
	return &Change{Silent: silent}, missing, nil
}

// Record switches recording on or off. On each communicator the change takes effect at the same operation for all
// members, which none of them has reached yet. Future communicators are recorded from their start, or not at all.
func (c *Controller) Record(ctx context.Context, on bool) (*Change, error) {
	unlock, err := c.lock(lockPatience)
	if err != nil {
		return nil, err
	}
	defer unlock()
	whole := new(Change)
	deadline := time.Now().Add(cmp.Or(c.Timeout, 5*time.Second))
	// Communicators created meanwhile may start with different windows, so check again. Where an earlier order takes
	// effect in a few operations, wait for these.
	for round := 0; ; round++ {
		before, now, silent, err := c.sample(ctx)
		if err != nil {
			return nil, err
		}
		whole.Silent = silent
		lead := cmp.Or(c.Lead, 2*time.Second)
		for i := range now {
			lead = max(lead, 2*now[i].Poll)
		}
		o := &File{New: &Nothing}
		if on {
			o.New = &Everything
		}
		changes, waiting := chooseWindows(before, now, on, lead, round == 0)
		if len(waiting) > 0 && time.Now().After(deadline) {
			return nil, fmt.Errorf(
				"%s is still a few operations before the one at which the last command takes effect: try again "+
					"later", strings.Join(waiting, ", "))
		}
		if len(changes) == 0 && len(waiting) == 0 && round > 0 {
			break
		}
		for _, w := range changes {
			o.Windows = append(o.Windows, w.Window)
			whole.Comms = append(whole.Comms, w.change)
		}
		answers, silent, err := c.ask(ctx, o, true)
		if err != nil {
			return nil, err
		}
		whole.Silent = silent
		for i := range answers {
			if a := &answers[i]; a.Late > 0 && !slices.Contains(whole.Late, a.name()) {
				whole.Late = append(whole.Late, a.name())
			}
		}
		if len(silent) > 0 || round >= 4 && len(waiting) == 0 {
			break
		}
	}
	return whole, nil
}

// windowChange is a new window, and what is reported about it.
type windowChange struct {
	Window
	change CommChange
}

// members holds the ranks of a communicator whose processes answered.
type members struct {
	key         Window
	now         []CommStatus
	rate        float64 // operations per second of the fastest rank
	least, most uint64  // lowest and highest ordinal of the ranks' next operations
	window      shm.Window
	agree       bool // all have the same window
	mixed       bool
}

// communicators groups the communicator ranks of all processes by communicator.
func communicators(before, now []Status) []*members {
	groups := make(map[Window]*members)
	earlier := make(map[Window]struct {
		ordinal uint64
		at      time.Time
	})
	for i := range before {
		for _, c := range before[i].Comms {
			earlier[Window{Shard: before[i].Shard, Index: c.Index}] = struct {
				ordinal uint64
				at      time.Time
			}{c.Ordinal(), before[i].Time}
		}
	}
	for i := range now {
		s := &now[i]
		for _, c := range s.Comms {
			key := Window{ID: c.ID, NRanks: c.NRanks}
			if c.ID == 0 {
				key.Shard, key.Index = s.Shard, c.Index
			}
			m := keyed.EntryMade(groups, key, func() *members {
				return &members{key: key, least: math.MaxUint64, window: c.Window(), agree: true}
			})
			m.now = append(m.now, c)
			m.least, m.most = min(m.least, c.Ordinal()), max(m.most, c.Ordinal())
			m.agree = m.agree && c.Window() == m.window
			m.mixed = m.mixed || c.Collectives > 0 && c.Replayed > 0
			if e, ok := earlier[Window{Shard: s.Shard, Index: c.Index}]; ok && s.Time.After(e.at) &&
				c.Ordinal() > e.ordinal {
				m.rate = max(m.rate, float64(c.Ordinal()-e.ordinal)/s.Time.Sub(e.at).Seconds())
			}
		}
	}
	list := slices.Collect(maps.Values(groups))
	slices.SortFunc(list, func(a, b *members) int {
		return cmp.Or(cmp.Compare(b.key.NRanks, a.key.NRanks), cmp.Compare(a.key.ID, b.key.ID),
			cmp.Compare(a.key.Shard, b.key.Shard), cmp.Compare(a.key.Index, b.key.Index))
	})
	return list
}

// chooseWindows returns new windows for the communicators that need one for the order. waiting names those that must
// first reach the operation of an earlier order. first: an earlier order that is far ahead is moved closer.
func chooseWindows(before, now []Status, on bool, lead time.Duration, first bool) (
	changes []windowChange, waiting []string) {
	for _, m := range communicators(before, now) {
		margin := max(leastMargin, uint64(math.Ceil(m.rate*lead.Seconds())))
		if !first && m.comply(on) {
			continue
		}
		w, ok := m.windowFor(on, margin)
		switch {
		case !ok:
			waiting = append(waiting, "communicator "+m.name())
			continue
		case m.agree && w == m.window:
			continue
		}
		c := windowChange{Window: m.key, change: CommChange{
			ID: m.key.ID, Name: m.now[0].Name, NRanks: m.key.NRanks, Members: len(m.now), First: w.First, Last: w.Last,
			Mixed: m.mixed,
		}}
		c.First, c.Last = w.First, w.Last
		c.change.Changed, _ = FirstDifference(m.window, w)
		changes = append(changes, c)
	}
	return changes, waiting
}

func (m *members) name() string {
	return cmp.Or(m.now[0].Name, fmt.Sprintf("0x%016x", m.key.ID))
}

// comply reports whether the members' windows already match an order to switch recording on or off.
func (m *members) comply(on bool) bool {
	w := m.window
	return m.agree && on == (w.First < w.Last && w.Last == math.MaxUint64)
}

// windowFor returns the window that switches recording on or off at an operation at least margin ahead. It returns
// false if an earlier order takes effect before that.
func (m *members) windowFor(on bool, margin uint64) (shm.Window, bool) {
	w, edge := m.window, m.most+margin
	empty := w.First >= w.Last
	switch {
	case on && (empty || w.Last <= m.least || !m.agree):
		return shm.Window{First: edge, Last: math.MaxUint64}, true
	case on && w.Last >= edge:
		return shm.Window{First: min(w.First, edge), Last: math.MaxUint64}, true
	case on:
		return w, false
	case !m.agree:
		return Nothing, true
	case empty, w.Last <= edge+margin:
		return w, true
	case w.First >= edge:
		return Nothing, true
	}
	return shm.Window{First: w.First, Last: edge + margin}, true
}
