// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// machine is go-nvml's DGX A100 with what it leaves out.
type machine struct {
	*dgxa100.Server
	missing map[string]bool // functions that its library does not have
	fields  map[[2]uint32]nvml.FieldValue
}

func newMachine() *machine {
	m := &machine{Server: dgxa100.New(), missing: make(map[string]bool), fields: make(map[[2]uint32]nvml.FieldValue)}
	m.LookupSymbolFunc = func(symbol string) error {
		if m.missing[symbol] {
			return errors.New("undefined symbol")
		}
		return nil
	}
	for i := range m.Devices {
		d := m.device(i)
		d.UUID = fmt.Sprintf("GPU-%08x-d72c-4106-c12f-20bd9faed9f6", 0x8932f937+i)
		d.PciBusID = fmt.Sprintf("0000:%02x:00.0", 0x10+i)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			return pciInfo("00000000" + d.PciBusID[4:]), nvml.SUCCESS
		}
		d.GetCurrPcieLinkGenerationFunc = func() (int, nvml.Return) { return 4, nvml.SUCCESS }
		d.GetCurrPcieLinkWidthFunc = func() (int, nvml.Return) { return 16, nvml.SUCCESS }
		d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			switch {
			case link == 1:
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			case link == 2: // one that does not answer does not hide those behind it
				return 0, nvml.ERROR_NOT_SUPPORTED
			case link < 4:
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		d.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) {
			return uint32(nvml.NVLINK_VERSION_3_0), nvml.SUCCESS
		}
		d.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
			return pciInfo(fmt.Sprintf("00000000:%02x:00.0", 0x80+link)), nvml.SUCCESS
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
		d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			for i := range values {
				v, ok := m.fields[[2]uint32{values[i].FieldId, values[i].ScopeId}]
				if !ok {
					v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
				}
				values[i].ValueType, values[i].Value, values[i].NvmlReturn = v.ValueType, v.Value, v.NvmlReturn
			}
			return nvml.SUCCESS
		}
		sensors(d)
	}
	m.set(nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON, 0, nvml.VALUE_TYPE_UNSIGNED_INT, 25781)
	return m
}

func (m *machine) device(i int) *dgxa100.Device { return m.Devices[i].(*dgxa100.Device) }

func (m *machine) set(field, scope uint32, typ nvml.ValueType, value uint64) {
	v := nvml.FieldValue{ValueType: uint32(typ)}
	binary.NativeEndian.PutUint64(v.Value[:], value)
	m.fields[[2]uint32{field, scope}] = v
}

// open opens the library of the machine.
func (m *machine) open(t *testing.T) Library {
	t.Helper()
	l := testkit.Value(open(m))(t)
	t.Cleanup(l.Close)
	return l
}

func pciInfo(text string) (info nvml.PciInfo) {
	for i := range len(text) {
		info.BusId[i] = text[i]
	}
	return info
}

// sensors gives a device all of them but NVLink.
func sensors(d *dgxa100.Device) {
	d.MemoryInfo.Used = 1 << 30
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 312_500, nvml.SUCCESS }
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1410, nvml.CLOCK_MEM: 1215}[c], nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 97, Memory: 41}, nvml.SUCCESS
	}
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 63, nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x4, nvml.SUCCESS }
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0x8, nvml.SUCCESS }
	d.GetPcieThroughputFunc = func(c nvml.PcieUtilCounter) (uint32, nvml.Return) {
		return map[nvml.PcieUtilCounter]uint32{nvml.PCIE_UTIL_TX_BYTES: 3000, nvml.PCIE_UTIL_RX_BYTES: 5000}[c],
			nvml.SUCCESS
	}
}

// divide makes a device one that is used in parts, and returns the parts' handles.
func (m *machine) divide(i int, uuids ...string) []*mock.Device {
	parent := m.device(i)
	parent.MigMode = nvml.DEVICE_MIG_ENABLE
	var parts []*mock.Device
	for n, uuid := range uuids {
		none := func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
		parts = append(parts, &mock.Device{
			GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
			GetNameFunc: func() (string, nvml.Return) {
				return "NVIDIA A100-SXM4-40GB MIG 3g.20gb", nvml.SUCCESS
			},
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
				return nvml.Memory{Total: 20 << 30, Used: 5}, nvml.SUCCESS
			},
			GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return n + 1, nvml.SUCCESS },
			GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
			GetDeviceHandleFromMigDeviceHandleFunc: func() (nvml.Device, nvml.Return) {
				return parent, nvml.SUCCESS
			},
			GetPowerUsageFunc: none,
			GetClockInfoFunc:  func(nvml.ClockType) (uint32, nvml.Return) { return none() },
			GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
				return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
			},
			GetTemperatureFunc: func(nvml.TemperatureSensors) (uint32, nvml.Return) { return none() },
			GetCurrentClocksEventReasonsFunc: func() (uint64, nvml.Return) {
				return 0, nvml.ERROR_NOT_SUPPORTED
			},
			GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
			GetFieldValuesFunc: func([]nvml.FieldValue) nvml.Return {
				return nvml.ERROR_NOT_SUPPORTED
			},
			GetPcieThroughputFunc: func(nvml.PcieUtilCounter) (uint32, nvml.Return) { return none() },
		})
	}
	parent.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	parent.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i < len(parts) {
			return parts[i], nvml.SUCCESS
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	whole := m.DeviceGetHandleByUUIDFunc
	m.DeviceGetHandleByUUIDFunc = func(uuid string) (nvml.Device, nvml.Return) {
		for i, u := range uuids {
			if u == uuid {
				return parts[i], nvml.SUCCESS
			}
		}
		return whole(uuid)
	}
	return parts
}

func TestIdentity(t *testing.T) {
	m := newMachine()
	want := Identity{
		Index: 2, UUID: m.device(2).UUID, PCI: "0000:12:00.0", Name: "Mock NVIDIA A100-SXM4-40GB", Memory: 42949672960,
		Driver:         "550.54.15",
		PCIeGeneration: 4, PCIeWidth: 16,
		NVLinks: []NVLink{
			{Link: 0, Version: "3.0", Speed: 25781, Peer: "0000:80:00.0", Switch: true},
			{Link: 3, Version: "3.0", Speed: 25781, Peer: "0000:83:00.0", Switch: true},
		},
	}
	for name, w := range map[string]Wanted{
		"by UUID": {UUID: strings.ToUpper(m.device(2).UUID), Ordinal: 0},
		"by PCI":  {PCI: "00000000:12:00.0", Ordinal: 0},
	} {
		d, err := m.open(t).Find(w)
		testkit.Require(t, err == nil, "%s: %v", name, err)
		testkit.Same(t, want, d.Identity())
	}
}

// What the driver's library lacks is not called, whatever it is: go-nvml's mocks panic, and go-nvml itself would end
// the program.
func TestFunctionsThatAreMissingAreNotCalled(t *testing.T) {
	m := newMachine()
	m.LookupSymbolFunc = func(string) error { return errors.New("undefined symbol") }
	for _, w := range []Wanted{
		{UUID: m.device(0).UUID}, {PCI: m.device(0).PciBusID}, {Ordinal: 0, Variable: variables()},
		{UUID: "MIG-GPU-" + uuidA + "/0/0"},
		{Ordinal: 0, Variable: variables("CUDA_VISIBLE_DEVICES=GPU-89")},
	} {
		if d, err := m.open(t).Find(w); !errors.Is(err, ErrNoDevice) {
			t.Errorf("%+v: %v, %v", w, d, err)
		}
	}
	// A device that was found by one function, where there is no other.
	m.LookupSymbolFunc = func(symbol string) error {
		if symbol == "nvmlDeviceGetHandleByUUID" {
			return nil
		}
		return errors.New("undefined symbol")
	}
	bare := &mock.Device{}
	m.DeviceGetHandleByUUIDFunc = func(string) (nvml.Device, nvml.Return) { return bare, nvml.SUCCESS }
	d := testkit.Value(m.open(t).Find(Wanted{UUID: uuidA}))(t)
	testkit.Same(t, Identity{Index: -1}, d.Identity())
	s := d.Sensors()
	testkit.Check(t, len(s) == 0, "%d sensors", len(s))
}

func TestOrdinalsFollowTheVariables(t *testing.T) {
	for _, c := range []struct {
		name    string
		ordinal int
		vars    string
		change  func(m *machine)
		want    int // −1: it is not certain
		guess   string
	}{
		{name: "unset", ordinal: 5, want: 5, guess: "ordinal"},
		{name: "of several kinds", ordinal: 0, want: -1, change: func(m *machine) { m.device(7).Name = "another" }},
		{name: "more than there are", ordinal: 8, want: -1},
		{name: "numbers", ordinal: 1, vars: "6,3", want: 3, guess: "CUDA_VISIBLE_DEVICES"},
		{name: "behind a number that is no GPU", ordinal: 1, vars: "8,3", want: -1},
		{name: "before a number that is no GPU", ordinal: 0, vars: "3,8", want: 3, guess: "CUDA_VISIBLE_DEVICES"},
		{name: "behind a UUID that is no GPU's", ordinal: 1, vars: "GPU-" + uuidB + ",3", want: -1},
		{name: "twice by number", ordinal: 0, vars: "3,3", want: -1},
		{name: "twice, the second behind", ordinal: 0, vars: "3,1,1", want: -1},
		{name: "twice, but not in what CUDA takes", ordinal: 0, vars: "3,-1,3", want: 3, guess: "CUDA_VISIBLE_DEVICES"},
		{name: "twice by number and UUID", ordinal: 1, vars: "1,GPU-8932f938", want: -1},
		{name: "whole UUID", ordinal: 0, vars: "GPU-8932f93b-d72c-4106-c12f-20bd9faed9f6", want: 4,
			guess: "CUDA_VISIBLE_DEVICES"},
		{name: "beginning of a UUID", ordinal: 1, vars: "0,gpu-8932F93C", want: 5, guess: "CUDA_VISIBLE_DEVICES"},
		{name: "beginning of several", ordinal: 0, vars: "GPU-8932f93", want: -1},
		{name: "beginning of none", ordinal: 0, vars: "GPU-aa", want: -1},
		{name: "none", ordinal: 0, vars: "-1", want: -1},
		{name: "a GPU that may not be used", ordinal: 0, vars: "1", want: -1, change: func(m *machine) {
			m.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_NO_PERMISSION }
		}},
		{name: "a GPU that is divided", ordinal: 0, vars: "1", want: -1, change: func(m *machine) { m.divide(1) }},
		{name: "the beginning of one that is divided", ordinal: 0, vars: "GPU-8932f938", want: -1,
			change: func(m *machine) { m.divide(1) }},
		{name: "no environment", ordinal: 0, vars: "unreadable", want: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine()
			if c.change != nil {
				c.change(m)
			}
			w := Wanted{Ordinal: c.ordinal, Variable: variables()}
			switch c.vars {
			case "":
			case "unreadable":
				w.Variable = nil
			default:
				w.Variable = variables("CUDA_VISIBLE_DEVICES=" + c.vars)
			}
			d, err := m.open(t).Find(w)
			if c.want < 0 {
				testkit.Check(t, errors.Is(err, ErrNoDevice), "%v, %v", d, err)
				return
			}
			testkit.Must(t, err)
			if id := d.Identity(); id.Index != c.want || id.Guess != c.guess {
				t.Errorf("GPU %d by %q; want %d by %q", id.Index, id.Guess, c.want, c.guess)
			}
		})
	}
}

func TestPartsOfGPUs(t *testing.T) {
	const first, second = "MIG-11111111-d72c-4106-c12f-20bd9faed9f6", "MIG-22222222-d72c-4106-c12f-20bd9faed9f6"
	m := newMachine()
	m.divide(3, first, second)
	whole := m.device(3).UUID
	for _, c := range []struct {
		name  string
		w     Wanted
		uuid  string
		gi    int
		guess string
	}{
		{"CUDA's UUID", Wanted{UUID: "GPU-" + second[4:], PCI: "0000:13:00.0"}, second, 2, ""},
		{"variable", Wanted{Variable: variables("CUDA_VISIBLE_DEVICES=" + first)}, first, 1, "CUDA_VISIBLE_DEVICES"},
		{"variable as of old drivers", Wanted{Variable: variables("CUDA_VISIBLE_DEVICES=MIG-" + whole + "/2/0")},
			second, 2, "CUDA_VISIBLE_DEVICES"},
	} {
		d, err := m.open(t).Find(c.w)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		id := d.Identity()
		want := &MIG{Parent: whole, GPUInstance: c.gi, ComputeInstance: 0}
		if diff := cmp.Diff(want, id.MIG); diff != "" || id.UUID != c.uuid || id.PCI != "0000:13:00.0" ||
			id.Index != 3 || !id.MIGMode ||
			id.Memory != 20<<30 || id.Guess != c.guess || !strings.Contains(id.Name, "3g.20gb") {
			t.Errorf("%s: %+v\n%s", c.name, id, diff)
		}
		// Only what the part has of its own.
		s := d.Sensors()
		testkit.Check(t, len(s) == 1 && s[0].Quantity == memoryUsed, "%s: sensors %+v", c.name, s)
	}
	for name, w := range map[string]Wanted{
		"an address that parts share": {PCI: "0000:13:00.0"},
		"a part that is not there":    {UUID: "MIG-" + whole + "/3/0"},
		"of a GPU that is not there":  {UUID: "MIG-GPU-" + uuidB + "/1/0"},
	} {
		if d, err := m.open(t).Find(w); !errors.Is(err, ErrNoDevice) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// clock replaces the time of rates.
func clock(t *testing.T) (pass func(time.Duration)) {
	at := time.Unix(1, 0)
	now = func() time.Time { return at }
	t.Cleanup(func() { now = time.Now })
	return func(d time.Duration) { at = at.Add(d) }
}

// read reads all sensors of a device: number, or error, or "none yet".
func read(list []Sensor) map[string]string {
	out := make(map[string]string)
	for _, s := range list {
		q := Quantities[s.Quantity]
		v, known, err := s.Read()
		switch {
		case err != nil:
			out[q.Name] = err.Error()
		case !known:
			out[q.Name] = "none yet"
		case q.Float:
			out[q.Name] = fmt.Sprint(math.Float64frombits(v))
		default:
			out[q.Name] = fmt.Sprint(v)
		}
	}
	return out
}

func TestSensors(t *testing.T) {
	pass := clock(t)
	m := newMachine()
	m.set(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, math.MaxUint32, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1000)
	m.set(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, math.MaxUint32, nvml.VALUE_TYPE_SIGNED_LONG_LONG, 0)
	d := testkit.Value(m.open(t).Find(Wanted{UUID: m.device(0).UUID}))(t)
	list := d.Sensors()
	for _, s := range list {
		if slow := s.Quantity == PCIeSent || s.Quantity == pcIeReceived; s.Slow != slow {
			t.Errorf("%s: slow %v", Quantities[s.Quantity].Name, s.Slow)
		}
	}
	pass(100 * time.Millisecond)
	m.set(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, math.MaxUint32, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 3000)
	want := map[string]string{
		"GPU power": "312500", "GPU SM clock": "1410", "GPU memory clock": "1215", "GPU utilization": "97",
		"GPU memory utilization": "41",
		"GPU temperature":        "63", "GPU clock limits": "4", "GPU memory used": "1073741824",
		"NVLink sent":     "2.048e+07",
		"NVLink received": "0",
		"PCIe sent":       "3e+06", "PCIe received": "5e+06",
	}
	testkit.Same(t, want, read(list))
}

// A counter of links that goes back begins a new period; a reading in no time gives none.
func TestRates(t *testing.T) {
	pass := clock(t)
	m := newMachine()
	m.missing["nvmlDeviceGetPcieThroughput"] = true
	total := func(first, third uint64) { // links that are not there do not matter
		m.set(nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 0, nvml.VALUE_TYPE_UNSIGNED_LONG, first)
		m.set(nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 3, nvml.VALUE_TYPE_UNSIGNED_INT, third)
	}
	total(1000, 1000)
	d := testkit.Value(m.open(t).Find(Wanted{UUID: m.device(0).UUID}))(t)
	list := d.Sensors()
	for _, step := range []struct {
		wait         time.Duration
		first, third uint64
		want         string
	}{
		{time.Second, 1500, 1500, "1000"},
		{0, 1600, 1500, "none yet"},
		{time.Second / 2, 1600, 1600, "200"},
		{time.Second, 5, 5, "none yet"},
		{time.Second, 6, 5, "1"},
	} {
		pass(step.wait)
		total(step.first, step.third)
		got := read(list)
		testkit.Equal(t, got["NVLink sent"], step.want, "%+v", step)
		_, there := got["NVLink received"]
		testkit.Check(t, !there, "a counter that the driver does not have is read")
	}
}

func TestWhatADeviceLacksIsNotRead(t *testing.T) {
	m := newMachine()
	m.missing["nvmlDeviceGetCurrentClocksEventReasons"] = true // as before R535
	m.missing[fieldValues] = true
	dev := m.device(0)
	dev.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	dev.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, nvml.ERROR_NO_PERMISSION }
	failing := nvml.ERROR_UNKNOWN
	dev.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 1}, failing }
	d := testkit.Value(m.open(t).Find(Wanted{UUID: dev.UUID}))(t)
	list := d.Sensors()
	want := map[string]string{
		"GPU SM clock": "1410", "GPU memory clock": "1215", "GPU utilization": "NVML error 999",
		"GPU memory utilization": "NVML error 999",
		"GPU clock limits":       "8", "GPU memory used": "1073741824", "PCIe sent": "3e+06", "PCIe received": "5e+06",
	}
	testkit.Same(t, want, read(list))
	// What failed once may work later.
	failing = nvml.SUCCESS
	testkit.Equal(t, read(list)["GPU utilization"], "1", "later")
}

func TestALostDeviceIsReportedSeparately(t *testing.T) {
	m := newMachine()
	dev := m.device(0)
	d := testkit.Value(m.open(t).Find(Wanted{UUID: dev.UUID}))(t)
	list := d.Sensors()
	for _, ret := range []nvml.Return{nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNINITIALIZED} {
		dev.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, ret }
		if _, _, err := list[0].Read(); !errors.Is(err, ErrLost) {
			t.Errorf("%d: %v", ret, err)
		}
	}
	dev.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_TIMEOUT }
	if _, _, err := list[0].Read(); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("a timeout: %v", err)
	}
}

func TestALibraryThatCannotBeUsedIsAnError(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 cannot be loaded",
		nvml.ERROR_DRIVER_NOT_LOADED: "the driver is not loaded",
		nvml.ERROR_NO_PERMISSION:     "no permission", nvml.ERROR_UNKNOWN: "NVML error 999",
	} {
		m := newMachine()
		m.InitFunc = func() nvml.Return { return ret }
		l, err := open(m)
		testkit.Check(t, errors.Is(err, ErrNoLibrary) && strings.Contains(err.Error(), want), "%d: %v, %v", ret, l, err)
	}
}

// On a machine without driver the real library is not there, and nothing worse happens.
func TestOpen(t *testing.T) {
	l, err := Open()
	if err != nil {
		testkit.Check(t, errors.Is(err, ErrNoLibrary), "%v", err)
		return
	}
	defer l.Close()
	if _, err := l.Find(Wanted{UUID: uuidB}); !errors.Is(err, ErrNoDevice) {
		t.Errorf("a GPU that cannot be there: %v", err)
	}
}
