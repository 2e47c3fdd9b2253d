// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package gpu

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Built reports that this program was built with NVML support.
const Built = true

// Open loads the driver's library and initializes NVML.
func Open() (Library, error) { return open(nvml.New()) }

func open(n nvml.Interface) (Library, error) {
	if ret := n.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("%w: %s", ErrNoLibrary, describe(ret))
	}
	return &library{nvml: n, symbols: make(map[string]bool)}, nil
}

// describe names a result without calling the library, which may be missing.
func describe(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "libnvidia-ml.so.1 cannot be loaded (in a container, NVIDIA_DRIVER_CAPABILITIES must have utility)"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	case nvml.ERROR_NOT_SUPPORTED:
		return "not supported"
	case nvml.ERROR_GPU_IS_LOST:
		return "it fell off the bus"
	case nvml.ERROR_RESET_REQUIRED:
		return "it needs a reset"
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

// library is NVML, opened.
type library struct {
	nvml    nvml.Interface
	symbols map[string]bool // functions looked up so far, and whether they exist
	all     []nvml.Device   // of whole GPUs, by NVML's index; nil without access
	listed  bool
}

func (l *library) Close() { _ = l.nvml.Shutdown() }

// hasFunction reports whether the driver's library has a function. go-nvml calls versioned functions in the newest
// version available; all drivers have the first version.
func (l *library) hasFunction(function string) bool {
	return keyed.EntryMade(l.symbols, function,
		func() bool { return l.nvml.Extensions().LookupSymbol(function) == nil })
}

func (l *library) devices() []nvml.Device {
	if l.listed || !l.hasFunction("nvmlDeviceGetCount") || !l.hasFunction("nvmlDeviceGetHandleByIndex") {
		return l.all
	}
	l.listed = true
	n, ret := l.nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	for i := range n {
		d, ret := l.nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			d = nil
		}
		l.all = append(l.all, d)
	}
	return l.all
}

// Find implements Library. What CUDA reports comes first; a UUID may be that of a whole GPU or of a part, because CUDA
// does not distinguish them.
func (l *library) Find(w Wanted) (Device, error) {
	if w.UUID != "" {
		id, err := parseID(w.UUID)
		if err != nil {
			return nil, err
		}
		if d := l.byID(id); d != nil {
			return d, nil
		}
		if d := l.byID(identity{mig: true, uuid: id.uuid}); d != nil {
			return d, nil
		}
		return nil, fmt.Errorf("%w: UUID %s", ErrNoDevice, w.UUID)
	}
	if pci := canonicalPCI(w.PCI); pci != "" {
		// The parts of a divided GPU share its address.
		if d := l.byPCI(pci); d != nil && !d.divided() {
			return d, nil
		}
		return nil, fmt.Errorf("%w: PCI address %s", ErrNoDevice, w.PCI)
	}
	if d := l.byOrdinal(&w); d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("%w: CUDA's device %d", ErrNoDevice, w.Ordinal)
}

// byOrdinal finds the device of CUDA's number. A list in CUDA_VISIBLE_DEVICES that CUDA would not accept as it is, with
// an invalid entry before the device or with a device twice, is not the list that CUDA used: the process changed its
// environment.
func (l *library) byOrdinal(w *Wanted) *device {
	list, source, ok := locate(w.Ordinal, w.Variable, l.sameModel())
	if !ok {
		return nil
	}
	var wanted *device
	seen := make(map[string]bool)
	for i, at := range list {
		d := l.located(at)
		if d == nil {
			break
		}
		uuid := d.uuid()
		if uuid == "" || seen[uuid] {
			return nil
		}
		seen[uuid] = true
		if i == w.Ordinal {
			wanted = d
			wanted.guess = source
		}
	}
	return wanted
}

// located finds the one device of a number, or of a UUID, of which CUDA_VISIBLE_DEVICES may have only the beginning.
func (l *library) located(at located) *device {
	all := l.devices()
	if at.uuid == "" {
		if at.index < 0 || at.index >= len(all) || all[at.index] == nil {
			return nil
		}
		if d := l.device(all[at.index]); !d.divided() {
			return d
		}
		return nil
	}
	if id, err := parseID(at.uuid); err == nil {
		return l.byID(id)
	}
	var found *device
	for _, h := range all {
		if h == nil {
			continue
		}
		d := l.device(h)
		if text := d.uuid(); len(text) < len(at.uuid) || !strings.EqualFold(text[:len(at.uuid)], at.uuid) {
			continue
		}
		if found != nil {
			return nil
		}
		found = d
	}
	if found != nil && found.divided() {
		return nil
	}
	return found
}

func (l *library) byID(id identity) *device {
	if id.instance {
		return l.instance(id)
	}
	if !l.hasFunction("nvmlDeviceGetHandleByUUID") {
		return nil
	}
	h, ret := l.nvml.DeviceGetHandleByUUID(id.String())
	if ret != nvml.SUCCESS {
		return nil
	}
	d := l.device(h)
	if id.mig {
		d.mig = l.part(h)
	}
	return d
}

// instance finds a part by its GPU.
func (l *library) instance(id identity) *device {
	parent := l.byID(identity{uuid: id.uuid})
	if parent == nil || !l.hasFunction("nvmlDeviceGetMaxMigDeviceCount") ||
		!l.hasFunction("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	n, ret := parent.nvml.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	for i := range n {
		h, ret := parent.nvml.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		if m := l.part(h); m.GPUInstance == id.gpuInstance && m.ComputeInstance == id.computeInstance {
			d := l.device(h)
			d.mig = m
			return d
		}
	}
	return nil
}

// part describes the handle of a part.
func (l *library) part(h nvml.Device) *MIG {
	m := &MIG{GPUInstance: -1, ComputeInstance: -1}
	if l.hasFunction("nvmlDeviceGetGpuInstanceId") {
		if n, ret := h.GetGpuInstanceId(); ret == nvml.SUCCESS {
			m.GPUInstance = n
		}
	}
	if l.hasFunction("nvmlDeviceGetComputeInstanceId") {
		if n, ret := h.GetComputeInstanceId(); ret == nvml.SUCCESS {
			m.ComputeInstance = n
		}
	}
	if parent := l.parent(h); parent != nil {
		m.Parent = l.device(parent).uuid()
	}
	return m
}

// parent returns the GPU of a part.
func (l *library) parent(h nvml.Device) nvml.Device {
	if !l.hasFunction("nvmlDeviceGetDeviceHandleFromMigDeviceHandle") {
		return nil
	}
	p, ret := h.GetDeviceHandleFromMigDeviceHandle()
	if ret != nvml.SUCCESS {
		return nil
	}
	return p
}

func (l *library) byPCI(address string) *device {
	if !l.hasFunction("nvmlDeviceGetHandleByPciBusId") {
		return nil
	}
	h, ret := l.nvml.DeviceGetHandleByPciBusId(address)
	if ret != nvml.SUCCESS {
		return nil
	}
	return l.device(h)
}

// sameModel reports whether all GPUs have the same name.
func (l *library) sameModel() bool {
	first := ""
	for _, h := range l.devices() {
		if h == nil || !l.hasFunction("nvmlDeviceGetName") {
			return false
		}
		name, ret := h.GetName()
		if ret != nvml.SUCCESS || first != "" && name != first {
			return false
		}
		first = name
	}
	return first != ""
}

func (l *library) device(h nvml.Device) *device { return &device{library: l, nvml: h} }

// device is a handle of NVML's.
type device struct {
	*library
	nvml  nvml.Device
	mig   *MIG // nil for a whole GPU
	guess string
}

// divided reports whether a GPU is divided into parts, so that CUDA does not show the GPU itself.
func (d *device) divided() bool {
	if d.mig != nil || !d.hasFunction("nvmlDeviceGetMigMode") {
		return false
	}
	current, _, ret := d.nvml.GetMigMode()
	return ret == nvml.SUCCESS && current == nvml.DEVICE_MIG_ENABLE
}

// Identity implements Device.
func (d *device) Identity() Identity {
	id := Identity{Index: -1, UUID: d.uuid(), MIG: d.mig, Guess: d.guess}
	whole := d.nvml // only the whole GPU has an address and links
	if d.mig != nil {
		whole = d.parent(d.nvml)
	}
	if d.hasFunction("nvmlDeviceGetName") {
		if name, ret := d.nvml.GetName(); ret == nvml.SUCCESS {
			id.Name = name
		}
	}
	if d.hasFunction("nvmlDeviceGetMemoryInfo") {
		if m, ret := d.nvml.GetMemoryInfo(); ret == nvml.SUCCESS {
			id.Memory = m.Total
		}
	}
	if d.hasFunction("nvmlSystemGetDriverVersion") {
		if version, ret := d.library.nvml.SystemGetDriverVersion(); ret == nvml.SUCCESS {
			id.Driver = version
		}
	}
	if whole == nil {
		return id
	}
	if d.hasFunction("nvmlDeviceGetIndex") {
		if n, ret := whole.GetIndex(); ret == nvml.SUCCESS {
			id.Index = n
		}
	}
	if d.hasFunction("nvmlDeviceGetPciInfo") {
		if info, ret := whole.GetPciInfo(); ret == nvml.SUCCESS {
			id.PCI = pciText(&info)
		}
	}
	if d.hasFunction("nvmlDeviceGetCurrPcieLinkGeneration") {
		if n, ret := whole.GetCurrPcieLinkGeneration(); ret == nvml.SUCCESS {
			id.PCIeGeneration = n
		}
	}
	if d.hasFunction("nvmlDeviceGetCurrPcieLinkWidth") {
		if n, ret := whole.GetCurrPcieLinkWidth(); ret == nvml.SUCCESS {
			id.PCIeWidth = n
		}
	}
	if d.hasFunction("nvmlDeviceGetMigMode") {
		if current, pending, ret := whole.GetMigMode(); ret == nvml.SUCCESS {
			id.MIGMode = current == nvml.DEVICE_MIG_ENABLE || pending == nvml.DEVICE_MIG_ENABLE
		}
	}
	id.NVLinks = d.links(whole)
	return id
}

// uuid returns the device's UUID in canonical form, or as NVML writes it if it is invalid; "" if unknown.
func (d *device) uuid() string {
	if !d.hasFunction("nvmlDeviceGetUUID") {
		return ""
	}
	text, ret := d.nvml.GetUUID()
	if ret != nvml.SUCCESS {
		return ""
	}
	if id, err := parseID(text); err == nil {
		return id.String()
	}
	return text
}

// pciText returns NVML's text of an address, made from the numbers if there is no text.
func pciText(info *nvml.PciInfo) string {
	text := string(info.BusId[:])
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	if pci := canonicalPCI(text); pci != "" {
		return pci
	}
	if info.Domain == 0 && info.Bus == 0 && info.Device == 0 {
		return ""
	}
	return canonicalPCI(fmt.Sprintf("%x:%x:%x", info.Domain, info.Bus, info.Device))
}

// nvlinkVersions are the values of nvmlNvlinkVersion_t.
var nvlinkVersions = map[nvml.NvlinkVersion]string{
	nvml.NVLINK_VERSION_1_0: "1.0", nvml.NVLINK_VERSION_2_0: "2.0", nvml.NVLINK_VERSION_2_2: "2.2",
	nvml.NVLINK_VERSION_3_0: "3.0",
	nvml.NVLINK_VERSION_3_1: "3.1", nvml.NVLINK_VERSION_4_0: "4.0", nvml.NVLINK_VERSION_5_0: "5.0",
}

// links lists the active NVLinks of a whole GPU.
func (d *device) links(h nvml.Device) []NVLink {
	if !d.hasFunction("nvmlDeviceGetNvLinkState") {
		return nil
	}
	var links []NVLink
	for i := range nvml.NVLINK_MAX_LINKS {
		state, ret := h.GetNvLinkState(i)
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		link := NVLink{Link: i}
		if d.hasFunction("nvmlDeviceGetNvLinkVersion") {
			if v, ret := h.GetNvLinkVersion(i); ret == nvml.SUCCESS {
				link.Version = nvlinkVersions[nvml.NvlinkVersion(v)]
			}
		}
		if d.hasFunction("nvmlDeviceGetNvLinkRemotePciInfo") {
			if info, ret := h.GetNvLinkRemotePciInfo(i); ret == nvml.SUCCESS {
				link.Peer = pciText(&info)
			}
		}
		if d.hasFunction("nvmlDeviceGetNvLinkRemoteDeviceType") {
			if t, ret := h.GetNvLinkRemoteDeviceType(i); ret == nvml.SUCCESS {
				link.Switch = t == nvml.NVLINK_DEVICE_TYPE_SWITCH
			}
		}
		if speed, err := d.field(h, nvml.FI_DEV_NVLINK_GET_SPEED, uint32(i)); err == nil {
			link.Speed = int(speed)
		} else if speed, err := d.field(h, nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON, 0); err == nil {
			link.Speed = int(speed)
		}
		links = append(links, link)
	}
	return links
}
