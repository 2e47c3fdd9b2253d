// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// selection states what NCCL is asked for, and what the plugin records of it.
type selection struct {
	event  uint32     // types
	record uint32     // event types, and shm.RecordRaw, RecordInWindow, RecordFull, RecordNetSums
	window shm.Window // initial window of all communicators
	cupti  uint64     // kinds of CUPTI activities (bits); 0: none
}

// chosenEvents returns the event types (bits) of the API version that the settings choose for this process.
func chosenEvents(s *config.Settings, l config.Launcher, h *shm.Header) uint32 {
	if len(s.Ranks) > 0 && l.Rank >= 0 && !s.Ranks.Has(l.Rank) {
		return 0
	}
	known := shm.KnownTypes(int(h.APIVersion))
	if s.Record {
		return known
	}
	return s.Events & known
}

// selectBy returns the selection that the settings request.
func selectBy(s *config.Settings, l config.Launcher, h *shm.Header) selection {
	types := chosenEvents(s, l, h)
	sel := selection{event: types, record: types &^ h.Withheld, window: control.Everything}
	switch {
	case s.Record: // a recording has NCCL's callbacks and nothing else
		sel.record |= shm.RecordRaw
	case types != 0:
		sel.cupti = s.CUPTI
	}
	if s.NetSums && !s.Record && types != 0 {
		sel.record |= shm.RecordNetSums
	}
	switch {
	case s.Paused:
		sel.window = control.Nothing
		sel.record |= shm.RecordInWindow
	case s.Window != nil:
		sel.window = shm.Window{First: s.Window.First, Last: s.Window.Last}
		sel.record |= shm.RecordInWindow
	}
	return sel
}

// pluginMasks sets what the plugin of a live process requests from NCCL and records.
type pluginMasks struct {
	memory *shm.Memory // nil: the process is not running
	chosen selection
}

// newPluginMasks sets what the plugin requests and records. A selection by an earlier collector of the process is kept,
// because the user may have changed it since.
func newPluginMasks(m *shm.Memory, sel selection) pluginMasks {
	h := m.Header()
	if h.CollectorPID != 0 && h.EventMask != 0 {
		sel = selection{event: h.EventMask, record: h.RecordMask &^ shm.RecordFull,
			window: shm.Window{First: h.WindowFirst, Last: h.WindowLast}, cupti: h.CuptiKinds}
		m.SetMasks(sel.event, sel.record)
		return pluginMasks{m, sel}
	}
	// Set the windows before the mask that puts them into effect.
	m.SetFirstWindow(sel.window)
	for i := range m.Comms() {
		m.SetWindow(i, sel.window)
	}
	m.SetCuptiKinds(sel.cupti)
	m.SetMasks(sel.event, sel.record)
	return pluginMasks{m, sel}
}

// set writes the present choice to the plugin's masks.
func (p *pluginMasks) set() { p.memory.SetMasks(p.chosen.event, p.chosen.record) }

// refuseNew makes the plugin record nothing new, and count what it refuses.
func (p *pluginMasks) refuseNew() {
	if p.memory != nil {
		p.chosen.record |= shm.RecordFull
		p.set()
	}
}

// recordNew makes the plugin record again.
func (p *pluginMasks) recordNew() {
	p.chosen.record &^= shm.RecordFull
	p.set()
}

// recorded returns the event types that are recorded.
func (p *pluginMasks) recorded() uint32 { return p.chosen.record & allTypes }

// eventList formats event types as in the setting EVENTS.
func (p *pluginMasks) eventList(types uint32) string {
	if types == 0 {
		return ""
	}
	return config.EventList(types | p.chosen.record&shm.RecordNetSums)
}
