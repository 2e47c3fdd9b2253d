// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// For an archive with raw events (docs/raw.md), there is one record for each event and state that NCCL reported, as the
// minimal profiler writes them. They replace the records that are derived from events.

// rawForm is the format of a member of details.
type rawForm uint8

const (
	rawNumber rawForm = iota
	rawText
	rawHex
	rawFlag
)

// rawDetails maps attributes of raw events to members of details, which are the minimal profiler's where it has one.
var rawDetails = map[otf2.AttributeRef]struct {
	name string
	form rawForm
}{
	regions.AttrFunction: {"func", rawText}, regions.AttrSeq: {"seq", rawNumber}, regions.AttrAlgo: {"algo", rawText},
	regions.AttrProto:    {"proto", rawText},
	regions.AttrChannels: {"channels", rawNumber}, regions.AttrWarps: {"warps", rawNumber},
	regions.AttrCount: {"count", rawNumber},
	regions.AttrRoot:  {"root", rawNumber}, regions.AttrDatatype: {"dtype", rawText},
	regions.AttrSendBuff: {"sendBuff", rawHex},
	regions.AttrRecvBuff: {"recvBuff", rawHex}, regions.AttrPlanID: {"parentGroup", rawHex},
	regions.AttrPeer:   {"peer", rawNumber},
	regions.AttrStream: {"stream", rawHex}, regions.AttrGraph: {"graphCaptured", rawFlag},
	regions.AttrGroupDepth: {"depth", rawNumber},
	regions.AttrChannel:    {"channel", rawNumber}, regions.AttrSteps: {"steps", rawNumber},
	regions.AttrChunkSize: {"chunkSize", rawNumber},
	regions.AttrSend:      {"isSend", rawFlag}, regions.AttrProxyPID: {"eventPid", rawNumber},
	regions.AttrStep:     {"step", rawNumber},
	regions.AttrGPUTimer: {"pTimer", rawNumber}, regions.AttrNetID: {"id", rawNumber},
	regions.AttrBytes:     {"length", rawNumber},
	regions.AttrNetDevice: {"device", rawNumber}, regions.AttrWorkRequest: {"wrId", rawNumber},
	regions.AttrOpcode: {"opcode", rawNumber},
	regions.AttrQP:     {"qp", rawNumber}, regions.AttrKernelVariant: {"kernelVariant", rawText},
	regions.AttrSymmetric: {"symmetric", rawFlag},
	regions.AttrUserTag:   {"userTag", rawNumber}, regions.AttrPhase: {"phase", rawNumber},
	regions.AttrPhaseName:    {"phaseName", rawText},
	regions.AttrSyncStrategy: {"syncStrategy", rawText}, regions.AttrBatchSize: {"batchSize", rawNumber},
	regions.AttrBatches: {"numBatches", rawNumber},
	regions.AttrCeSeq:   {"ceSeq", rawNumber}, regions.AttrSyncRanks: {"syncRanks", rawNumber},
	regions.AttrBatchOps: {"numOps", rawNumber},
	regions.AttrComplete: {"isComplete", rawFlag}, regions.AttrUnfinished: {"unfinished", rawFlag},
}

// rawFlags lists, by event type, the flags that records always have, even if false.
var rawFlags = map[string][]otf2.AttributeRef{
	"GroupApi": {regions.AttrGraph}, "CollApi": {regions.AttrGraph}, "P2pApi": {regions.AttrGraph},
	"ProxyOp": {regions.AttrSend},
}

// rawShown lists the groups of regions that raw records replace.
var rawShown = map[string]bool{
	regions.GroupAPI: true, regions.GroupEnqueue: true, regions.GroupCollectives: true, regions.GroupPointToPoint: true,
	regions.GroupProxy:   true,
	regions.GroupNetwork: true, regions.GroupKernel: true,
}

// rawOpen is a raw event whose region is open.
type rawOpen struct {
	event, tid uint64
}

// hasRaw reports whether an archive has raw events.
func (r *rows) hasRaw() bool {
	return slices.Contains(slices.Collect(maps.Values(r.group)), regions.GroupEvents)
}

// rawEnter records the event that begins, for its states.
func (l *lines) rawEnter(r *facts.Region) {
	if l.rows.group[r.Region] == regions.GroupEvents {
		tid, _ := l.rows.attributes.Last(r.Attributes, regions.AttrTID)
		l.rawOpen[r.Location] = rawOpen{r.Event, tid}
	}
}

// rawEvent writes the record of an event that has stopped. The first thread in its attributes reported its start, the
// last one its stop.
func (l *lines) rawEvent(row *row, r *facts.Region) {
	name := strings.TrimPrefix(l.rows.defs.RegionName(r.Region), regions.EventPrefix)
	one := record{typ: regions.EventPrefix + name, function: name, row: row, of: l.findCaller(r.Attributes),
		begin: r.Begin, end: r.End, event: r.Event, parent: r.Parent}
	one.startTID = l.rawOpen[r.Location].tid
	one.stopTID, _ = l.rows.attributes.Last(r.Attributes, regions.AttrTID)
	if f, ok := l.rows.attributes.Last(r.Attributes, regions.AttrFunction); ok {
		one.function = l.rows.defs.String(otf2.StringRef(f))
	}
	one.details = func(j *jsonWriter) {
		for _, a := range r.Attributes {
			ref, _ := l.rows.attributes.Resolve(a.ID)
			l.rawDetail(j, name, ref, a.Bits)
		}
		for _, flag := range rawFlags[name] {
			if _, set := l.rows.attributes.Last(r.Attributes, flag); !set {
				j.boolean(rawDetails[flag].name, false)
			}
		}
	}
	l.writeEvent(&one)
}

func (l *lines) rawDetail(j *jsonWriter, event string, ref otf2.AttributeRef, v uint64) {
	d, ok := rawDetails[ref]
	switch {
	case !ok:
		return
	case event == "P2p" && ref == regions.AttrSendBuff:
		d.name = "buff"
	}
	switch d.form {
	case rawText:
		j.text(d.name, l.rows.defs.String(otf2.StringRef(v)))
	case rawHex:
		j.hex(d.name, v)
	case rawFlag:
		j.boolean(d.name, v != 0)
	default:
		j.unsigned(d.name, v)
	}
}

// rawState writes the record of a state. It belongs to the event that it names, or else to the open one on the row.
func (l *lines) rawState(row *row, r *facts.Region) {
	name := strings.TrimPrefix(l.rows.defs.RegionName(r.Region), regions.StatePrefix)
	of := rawOpen{event: r.Event}
	if of.event == 0 {
		of = l.rawOpen[r.Location]
	}
	if tid, stated := l.rows.attributes.Last(r.Attributes, regions.AttrTID); stated {
		of.tid = tid
	}
	one := record{row: row, begin: r.Begin, event: of.event, startTID: of.tid}
	argument, has := l.rows.attributes.Last(r.Attributes, regions.AttrArgument)
	steps, counted := l.rows.attributes.Last(r.Attributes, regions.AttrSteps)
	number := stateID(name)
	l.writeStateWith(&one, name, func(j *jsonWriter) {
		if kind := api.StateArgument(uint32(number)); has && number >= 0 && kind != api.None {
			if kind == api.NetArg {
				j.hex(kind.String(), argument)
			} else {
				j.unsigned(kind.String(), argument)
			}
		}
		if counted {
			j.unsigned("steps", steps)
		}
	})
}

// stateID returns the number of a state in NCCL's enumeration, which is the same in all versions up to API v7; −1 if
// it has none.
func stateID(name string) int64 {
	for i := range uint32(shm.StateCount) {
		if shm.StateName(i) == name {
			return int64(i)
		}
	}
	return -1
}
