// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Inspector's JSON, formats v4.0 to v4.4 (inspector_json.cc of NCCL, 2026): one object per operation and rank, with
// header, metadata and coll_perf or p2p_perf. Times are those of gettimeofday in microseconds. v4.1 adds losses
// (dump_stats), v4.2 algorithms and protocols. In v4.3 and v4.4 the lines after a line with dump_stats share that
// line's header and metadata, and the proxies' work is recorded (proxy_trace).
type (
	inspectorHeader struct {
		ID    string `json:"id"` // commId in hexadecimal
		Name  string `json:"comm_name"`
		Rank  int    `json:"rank"`
		Ranks int    `json:"n_ranks"`
		Nodes int    `json:"nnodes"`
	}
	inspectorMetadata struct {
		Version string `json:"inspector_output_format_version"`
		Dumped  uint64 `json:"dump_timestamp_us"`
		Host    string `json:"hostname"`
		PID     int    `json:"pid"`
	}
	inspectorColl struct {
		Function string          `json:"coll"`
		Algo     string          `json:"coll_algo"` // "unknown": not stated
		Proto    string          `json:"coll_proto"`
		Number   whole           `json:"coll_sn"` // NCCL's sequence number
		Size     whole           `json:"coll_msg_size_bytes"`
		Took     measure         `json:"coll_exec_time_us"`
		Source   string          `json:"coll_timing_source"`
		Trace    *inspectorTrace `json:"event_trace_ts"`
	}
	inspectorP2P struct {
		Function string          `json:"p2p"`
		Number   whole           `json:"p2p_sn"` // counted by Inspector, per communicator rank
		Peer     int32           `json:"p2p_peer"`
		Size     whole           `json:"p2p_msg_size_bytes"`
		Took     measure         `json:"p2p_exec_time_us"`
		Source   string          `json:"p2p_timing_source"`
		Trace    *inspectorTrace `json:"event_trace_ts"`
	}
	// inspectorStats counts what was dropped of a communicator rank since the start.
	inspectorStats struct {
		Coll uint64 `json:"coll_dropped_total"`
		P2P  uint64 `json:"p2p_dropped_total"`
	}
	// inspectorTrace is when the host learned of an operation's events; it needs NCCL_INSPECTOR_DUMP_VERBOSE.
	inspectorTrace struct {
		CollStart uint64 `json:"coll_start_ts"`
		CollStop  uint64 `json:"coll_stop_ts"`
		P2PStart  uint64 `json:"p2p_start_ts"`
		P2PStop   uint64 `json:"p2p_stop_ts"`
		Kernels   []struct {
			Start  uint64 `json:"kernel_start_ts"`
			Stop   uint64 `json:"kernel_stop_ts"`
			Record uint64 `json:"kernel_record_ts"`
		} `json:"kernel_events"`
	}
)

// maxMicros is the largest time or duration accepted; larger ones are damage.
const maxMicros = 9e15

// maxOrdinal is the largest ordinal accepted.
const maxOrdinal = 1 << 48

// inherit gives a line without header and metadata those of marker, the last line with them.
func (l *line) inherit(marker *line) {
	switch {
	case l.Header != nil && l.Metadata != nil:
		marker.Header, marker.Metadata = l.Header, l.Metadata
	case l.Header == nil && l.Metadata == nil && (l.Coll != nil || l.P2P != nil || l.Proxy != nil):
		l.Header, l.Metadata = marker.Header, marker.Metadata
	}
}

func (l *line) inspectable() error {
	switch {
	case l.Coll != nil && l.Coll.Function == "" || l.P2P != nil && l.P2P.Function == "":
		return errors.New("an operation without name")
	case l.P2P != nil && l.P2P.Function != "Send" && l.P2P.Function != "Recv":
		return fmt.Errorf("a message that is %.40q, neither Send nor Recv", l.P2P.Function)
	case l.Header.Rank < 0 || l.Header.Ranks < 1 || l.Header.Rank >= l.Header.Ranks:
		return fmt.Errorf("rank %d of %d", l.Header.Rank, l.Header.Ranks)
	case l.Header.Ranks > description.MaxRanks:
		return tooManyRanks(l.Header.Ranks)
	case l.Metadata.Dumped == 0 || l.Metadata.Dumped > maxMicros:
		return errors.New("an operation without dump_timestamp_us")
	case l.P2P != nil && (l.P2P.Peer < 0 || int(l.P2P.Peer) >= l.Header.Ranks):
		return fmt.Errorf("a message with rank %d of %d", l.P2P.Peer, l.Header.Ranks)
	case l.Coll != nil && l.Coll.Took.value > maxMicros || l.P2P != nil && l.P2P.Took.value > maxMicros:
		return errors.New("an operation that takes centuries")
	case l.Coll != nil && l.Coll.Number > maxOrdinal || l.P2P != nil && l.P2P.Number > maxOrdinal:
		return errors.New("an operation whose number no job reaches")
	}
	if _, err := strconv.ParseUint(strings.TrimPrefix(l.Header.ID, "0x"), 16, 64); err != nil {
		return fmt.Errorf("%.40q is not the id of a communicator", l.Header.ID)
	}
	return nil
}

// sample is an operation in Inspector's data.
type sample struct {
	header   inspectorHeader
	id       uint64
	function string
	algo     string // "" if not stated, as proto
	proto    string
	message  bool
	peer     int32
	number   uint64
	size     uint64
	dumped   uint64 // ns, as the following
	took     uint64
	source   string // regions.Timing…; "": not even the duration is known
	begin    uint64 // 0: not known
	end      uint64
	slack    uint64 // uncertainty of begin and end
	reported inspectorReports
	channels uint8  // 0: not known
	datatype string // "": bytes
	open     bool   // its end is not recorded
	callSite string // "" if it is not known
}

// inspectorReports is when the host learned of an operation, ns; it is set if the operation's times come from there.
type inspectorReports struct{ enqueued, began, ended uint64 }

func newSample(l *line) sample {
	s := sample{header: *l.Header, dumped: l.Metadata.Dumped * 1000}
	s.id, _ = strconv.ParseUint(strings.TrimPrefix(l.Header.ID, "0x"), 16, 64)
	s.header.Name = known(s.header.Name)
	source, trace := "", (*inspectorTrace)(nil)
	if c := l.Coll; c != nil {
		s.function, source, trace = c.Function, c.Source, c.Trace
		s.number, s.size = uint64(c.Number), uint64(c.Size)
		s.setDuration(c.Took)
		s.algo, s.proto = known(c.Algo), known(c.Proto)
	} else {
		p := l.P2P
		s.function, source, trace = p.Function, p.Source, p.Trace
		s.number, s.size = uint64(p.Number), uint64(p.Size)
		s.setDuration(p.Took)
		s.message, s.peer = true, p.Peer
	}
	if trace != nil {
		s.placeTime(trace, source)
	}
	return s
}

// setDuration sets the operation's duration, in microseconds.
func (s *sample) setDuration(took measure) {
	if took.known {
		s.took, s.source = uint64(math.Round(took.value*1000)), regions.TimingDuration
	}
}

// known returns a name, or "" if Inspector does not know it.
func known(name string) string {
	if name == "unknown" {
		return ""
	}
	return name
}

// placeTime finds when the operation ran from when the host learned of its events. Reports are late: the operation
// ended no later than the last end was reported, and began no later than the first begin was reported.
func (s *sample) placeTime(t *inspectorTrace, source string) {
	const never = math.MaxUint64
	enqueued, stopped := max(t.CollStart, t.P2PStart), max(t.CollStop, t.P2PStop)
	began, ended := uint64(never), uint64(0)
	for _, k := range t.Kernels {
		if k.Start != 0 {
			began = min(began, k.Start)
		}
		ended = max(ended, k.Stop, k.Record)
	}
	if enqueued == 0 || max(enqueued, stopped, ended) > maxMicros {
		return
	}
	enqueued, stopped = enqueued*1000, stopped*1000
	switch {
	case source == "collective_cpu" || began == never || ended < began:
		s.begin, s.end, s.source = enqueued, max(enqueued, stopped), regions.TimingEnqueue
	case source == "kernel_cpu" || s.source == "":
		s.begin, s.end, s.source = began*1000, ended*1000, regions.TimingGPU
	default:
		s.end = min(ended*1000, began*1000+s.took)
		s.begin = s.end - min(s.took, s.end)
		s.source = regions.TimingGPU
	}
	if s.source == regions.TimingGPU {
		s.reported = inspectorReports{enqueued, began * 1000, ended * 1000}
	}
}

// setUncertainties sets the uncertainties of the times of a communicator rank's operations.
func setUncertainties(samples []sample) {
	var timed []*sample
	for i := range samples {
		if samples[i].source == regions.TimingGPU {
			timed = append(timed, &samples[i])
		}
	}
	if len(timed) == 0 {
		return
	}
	slices.SortStableFunc(timed, func(a, b *sample) int { return cmp.Compare(a.reported.began, b.reported.began) })
	delays := boundTimes(timed, 0)
	slices.Sort(delays)
	boundTimes(timed, max(delays[len(delays)/10], 1000))
}

// boundTimes bounds how much earlier than stated operations may have run, and returns the greatest possible delays of
// the reports that they had begun. They began no earlier than the one before had ended, if that was reported first, and
// no earlier than they were enqueued, which is reported after the launch. Where the begin was reported while the
// operation ran, it was not reported much later than usual. usual is a delay that a tenth of the reports do not exceed.
// With these factors, the bounds held for 99 % of 800 operations inside the real NCCL, of four ranks on two processors.
func boundTimes(samples []*sample, usual uint64) (delays []uint64) {
	const afterLaunch, whileRunning = 3, 8
	var free, freed uint64 // the earliest end of the operation before, and when it was reported
	for _, s := range samples {
		r := &s.reported
		earliest := r.enqueued - min(afterLaunch*usual, r.enqueued)
		if r.began >= freed {
			earliest = max(earliest, free)
		}
		s.slack = s.begin - min(earliest, s.begin)
		delays = append(delays, r.began-min(earliest, r.began))
		if usual > 0 && r.ended-r.began >= (s.end-s.begin)/2 {
			s.slack = min(s.slack, whileRunning*usual)
		}
		free, freed = s.end-s.slack, r.ended
		s.slack += 1000 // times are whole microseconds
	}
	return delays
}

// inspected is one process's data in a format that gives durations of operations.
type inspected struct {
	host    string
	pid     int
	from    string // the format
	samples []sample
	dropped map[string]*droppedOf // by communicator and rank
	proxies uint64                // records of the proxies' work
	lacks   []string              // what such data does not contain
	base    uint64                // number of the first message
}

// droppedOf is the last statement of what was dropped of a communicator rank.
type droppedOf struct {
	inspectorStats
	header inspectorHeader
	dumped uint64 // ns
}

// add adds a line of the process.
func (in *inspected) add(l *line) {
	switch {
	case l.Stats != nil:
		in.setDropped(l.Header, l.Metadata.Dumped*1000, *l.Stats)
	case l.Coll != nil || l.P2P != nil:
		in.samples = append(in.samples, newSample(l))
	default:
		in.proxies++
	}
}

// key names a communicator rank.
func (h *inspectorHeader) key() string { return fmt.Sprint(h.ID, " ", h.Rank) }

// setDropped notes how much was dropped of a communicator rank in total.
func (in *inspected) setDropped(h *inspectorHeader, dumped uint64, n inspectorStats) {
	if in.dropped == nil {
		in.dropped = make(map[string]*droppedOf)
	}
	d := keyed.EntryMade(in.dropped, h.key(), func() *droppedOf { return &droppedOf{header: *h, dumped: dumped} })
	d.inspectorStats = inspectorStats{max(d.Coll, n.Coll), max(d.P2P, n.P2P)}
}

// Reasons for which the writer dropped records.
const (
	droppedCollectives = "DROPPED_COLLECTIVES"
	droppedMessages    = "DROPPED_MESSAGES"
)

// countLosses counts what the process's data lacks. absent is what the ordinals show to be missing.
func (in *inspected) countLosses(p *processWriter, absent inspectorStats) {
	var all inspectorStats
	for _, d := range in.dropped {
		all.Coll, all.P2P = all.Coll+d.Coll, all.P2P+d.P2P
	}
	for _, l := range []struct {
		typ, dropped    string
		written, absent uint64
	}{{"Coll", droppedCollectives, all.Coll, absent.Coll}, {"P2p", droppedMessages, all.P2P, absent.P2P}} {
		p.countLost(loss.ByWriter, l.typ, l.written)
		p.countLost(loss.FromInput, l.typ, l.absent-min(l.absent, l.written))
		p.count(l.dropped, l.written)
		p.count("ABSENT_OPERATIONS", l.absent)
	}
	p.count("PROXY_RECORDS", in.proxies)
}

// missing lists what the data does not contain.
func (in *inspected) missing() []string {
	out := slices.Clone(in.lacks)
	if !slices.ContainsFunc(in.samples, func(s sample) bool { return s.algo != "" }) {
		out = append(out, "algorithms and protocols")
	}
	if slices.ContainsFunc(in.samples, func(s sample) bool { return s.source == regions.TimingDuration }) {
		when := "when operations ran: they are laid one behind the other"
		if in.samples[0].dumped > 0 {
			when += " before the time at which Inspector wrote them"
		}
		out = append(out, when)
	}
	return out
}

// inspectorLacks lists what Inspector's data does not contain.
var inspectorLacks = []string{"calls", "kernel launches", "network", "element types", "roots", "GPUs",
	"operations below Inspector's least size"}

// writeRecords makes callbacks of the samples, communicator by communicator.
func (in *inspected) writeRecords(p *processWriter) error {
	type key struct {
		id          uint64
		rank, ranks int
	}
	index := make(map[key]int)
	var byComm [][]sample
	for _, s := range in.samples {
		k := key{s.id, s.header.Rank, s.header.Ranks}
		i, ok := index[k]
		if !ok {
			i = len(byComm)
			index[k] = i
			byComm = append(byComm, nil)
		}
		byComm[i] = append(byComm[i], s)
	}
	in.samples = nil
	var all []placed
	var absent inspectorStats
	for comm, samples := range byComm {
		whole := len(samples)
		samples, lost := inOrder(samples, in.base)
		absent.Coll, absent.P2P = absent.Coll+lost.Coll, absent.P2P+lost.P2P
		p.count(repeatedOperations, uint64(whole-len(samples)))
		setUncertainties(samples)
		layOut(samples)
		first := samples[0].begin
		for _, s := range samples {
			first = min(first, s.begin)
		}
		h := samples[0].header
		if d := in.dropped[h.key()]; d != nil {
			lost.P2P = max(lost.P2P, d.P2P)
			d.dumped = 0 // the rank has data
		}
		p.comms = append(p.comms, description.Comm{
			ID: samples[0].id, Name: h.Name, NRanks: h.Ranks, Rank: h.Rank, NNodes: h.Nodes, InitTime: first,
			LostMessages: lost.P2P,
		})
		for _, s := range samples {
			all = append(all, placed{s, comm})
		}
	}
	in.countLosses(p, absent)
	in.addSilent(p)
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.begin, b.begin) })
	for i := range all {
		switch all[i].function {
		case "Broadcast", "Reduce", "Gather", "Scatter":
			p.count(withoutRoot, 1)
		}
		if err := p.writeSample(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// addSilent adds the communicator ranks of which everything was dropped.
func (in *inspected) addSilent(p *processWriter) {
	for _, key := range slices.Sorted(maps.Keys(in.dropped)) {
		d := in.dropped[key]
		if h := d.header; d.dumped > 0 && h.Rank >= 0 && h.Ranks > 1 {
			id, _ := strconv.ParseUint(strings.TrimPrefix(h.ID, "0x"), 16, 64)
			p.comms = append(p.comms, description.Comm{ID: id, Name: known(h.Name), NRanks: h.Ranks, Rank: h.Rank,
				NNodes: h.Nodes, InitTime: d.dumped, LostMessages: d.P2P})
		}
	}
}

type placed struct {
	sample
	comm int
}

// inOrder sorts the operations of each function, and the messages, of a communicator rank by their numbers, within the
// places that they occupy, and removes duplicates. absent counts the numbers without an operation below the greatest
// one; base is the first number of messages.
func inOrder(samples []sample, base uint64) (ordered []sample, absent inspectorStats) {
	places := make(map[string][]int)
	for i := range samples {
		f := samples[i].function
		if samples[i].message {
			f = "" // all messages share one numbering
		}
		places[f] = append(places[f], i)
	}
	twice := make([]bool, len(samples))
	for _, at := range places {
		group := make([]sample, len(at))
		for i, k := range at {
			group[i] = samples[k]
		}
		slices.SortStableFunc(group, func(a, b sample) int { return cmp.Compare(a.number, b.number) })
		there := uint64(0)
		for i, k := range at {
			samples[k] = group[i]
			if twice[k] = i > 0 && group[i].number == group[i-1].number; !twice[k] {
				there++
			}
		}
		last := &group[len(group)-1]
		if n := last.number + 1; last.message {
			absent.P2P += n - base - min(there, n-base)
		} else {
			absent.Coll += n - there
		}
	}
	for i := range samples {
		if !twice[i] {
			ordered = append(ordered, samples[i])
		}
	}
	return ordered, absent
}

// layOut puts operations of which only the duration is known one after the other, so that the last one written at a
// time ends then; earlier ones that would overlap move back. Where the time of writing is unknown, they start at the
// earliest time. Operations with times keep them, but begin no earlier than those before them in their sequence.
func layOut(samples []sample) {
	if undated := samples[0].dumped == 0; undated {
		sum := uint64(minTime)
		for i := range samples {
			sum = min(sum+samples[i].took, maxSpan)
		}
		for i := range samples {
			samples[i].dumped = sum
		}
	}
	until := uint64(math.MaxUint64)
	for i := len(samples) - 1; i >= 0; i-- {
		s := &samples[i]
		if s.source != regions.TimingDuration && s.source != "" {
			continue
		}
		s.end = min(s.dumped, until)
		s.begin = s.end - min(s.took, s.end-1)
		until = s.begin
	}
	latest := make(map[string]uint64)
	for i := range samples {
		s := &samples[i]
		s.begin = max(s.begin, latest[s.function])
		s.end = max(s.end, s.begin)
		latest[s.function] = s.begin
		s.source = cmp.Or(s.source, regions.TimingEnqueue)
	}
}

// writeSample writes the records of one operation.
func (p *processWriter) writeSample(o *placed) error {
	typ := shm.EventColl
	r := shm.Record{
		Kind: shm.RecordStart, Aux: uint32(o.comm), Func: o.function, Seq: o.number, Count: o.size,
		Datatype: cmp.Or(o.datatype, bytesType), Root: -1, Rank: int32(o.header.Rank),
		Peer: o.peer, Algo: o.algo, Proto: o.proto, NChannels: o.channels,
	}
	times := regions.Imported{Begin: o.begin, End: o.end, Source: o.source, Uncertainty: o.slack,
		Stated: o.source == regions.TimingGPU, CallSite: o.callSite}
	if o.message {
		typ = shm.EventP2p
		r.Flags |= shm.FlagUnknownChannels
	} else {
		times.Ordinal, times.Numbered = o.number, true
	}
	r.Type, r.Handle = typ, p.newHandle(typ)
	p.model.Import(r.Handle, times)
	if err := p.passRecord(noThread, o.begin, &r); err != nil {
		return err
	}
	p.count("OPERATIONS", 1)
	if o.open {
		return nil
	}
	return p.passRecord(noThread, o.begin, &shm.Record{Kind: shm.RecordStop, Type: typ, Handle: r.Handle})
}

// bytesType is what NCCL prints for ncclUint8: the size in bytes is the number of elements.
const bytesType = "Unknown"
