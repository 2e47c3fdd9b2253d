// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errNone means that the device or its driver lacks the quantity, or access is denied.
var errNone = errors.New("not there")

// failure converts a result to an error; nil for success.
func failure(ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		return fmt.Errorf("%w: %s", errNone, describe(ret))
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNINITIALIZED:
		return fmt.Errorf("%w: %s", ErrLost, describe(ret))
	}
	return fmt.Errorf("%s", describe(ret))
}

// reading is one way to read a quantity; the first that works is used.
type reading struct {
	quantity int
	function string // of the driver's library
	slow     bool
	// count is set if the value is a counter of bytes, which is converted to a rate.
	count bool
	read  func(d *device) (uint64, nvml.Return)
}

// readings are tried in this order. The driver's counters of PCIe bytes wrap at an unknown value, so a difference of
// two readings is uncertain; the throughput is not.
var readings = []reading{
	{quantity: Power, function: "nvmlDeviceGetPowerUsage", read: func(d *device) (uint64, nvml.Return) {
		v, ret := d.nvml.GetPowerUsage()
		return uint64(v), ret
	}},
	{quantity: smClock, function: "nvmlDeviceGetClockInfo", read: func(d *device) (uint64, nvml.Return) {
		v, ret := d.nvml.GetClockInfo(nvml.CLOCK_SM)
		return uint64(v), ret
	}},
	{quantity: memoryClock, function: "nvmlDeviceGetClockInfo", read: func(d *device) (uint64, nvml.Return) {
		v, ret := d.nvml.GetClockInfo(nvml.CLOCK_MEM)
		return uint64(v), ret
	}},
	{quantity: utilization, function: "nvmlDeviceGetUtilizationRates", read: func(d *device) (uint64, nvml.Return) {
		v, ret := d.nvml.GetUtilizationRates()
		return uint64(v.Gpu), ret
	}},
	{quantity: memoryUtilization, function: "nvmlDeviceGetUtilizationRates",
		read: func(d *device) (uint64, nvml.Return) {
			v, ret := d.nvml.GetUtilizationRates()
			return uint64(v.Memory), ret
		}},
	{quantity: Temperature, function: "nvmlDeviceGetTemperature", read: func(d *device) (uint64, nvml.Return) {
		v, ret := d.nvml.GetTemperature(nvml.TEMPERATURE_GPU)
		return uint64(v), ret
	}},
	{quantity: clockReasons, function: "nvmlDeviceGetCurrentClocksEventReasons",
		read: func(d *device) (uint64, nvml.Return) {
			return d.nvml.GetCurrentClocksEventReasons()
		}},
	{quantity: clockReasons, function: "nvmlDeviceGetCurrentClocksThrottleReasons",
		read: func(d *device) (uint64, nvml.Return) {
			return d.nvml.GetCurrentClocksThrottleReasons()
		}},
	{quantity: memoryUsed, function: "nvmlDeviceGetMemoryInfo", read: func(d *device) (uint64, nvml.Return) {
		m, ret := d.nvml.GetMemoryInfo()
		return m.Used, ret
	}},
	{quantity: NVLinkSent, function: fieldValues, count: true, read: func(d *device) (uint64, nvml.Return) {
		return d.counter(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks, 1024)
	}},
	{quantity: NVLinkSent, function: fieldValues, count: true, read: func(d *device) (uint64, nvml.Return) {
		return d.linkCounter(nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES)
	}},
	{quantity: nvLinkReceived, function: fieldValues, count: true, read: func(d *device) (uint64, nvml.Return) {
		return d.counter(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks, 1024)
	}},
	{quantity: nvLinkReceived, function: fieldValues, count: true, read: func(d *device) (uint64, nvml.Return) {
		return d.linkCounter(nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES)
	}},
	{quantity: PCIeSent, function: "nvmlDeviceGetPcieThroughput", slow: true,
		read: func(d *device) (uint64, nvml.Return) {
			v, ret := d.nvml.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES)
			return math.Float64bits(float64(v) * 1000), ret // from KB/s
		}},
	{quantity: pcIeReceived, function: "nvmlDeviceGetPcieThroughput", slow: true,
		read: func(d *device) (uint64, nvml.Return) {
			v, ret := d.nvml.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES)
			return math.Float64bits(float64(v) * 1000), ret
		}},
}

const (
	fieldValues = "nvmlDeviceGetFieldValues"
	allLinks    = math.MaxUint32 // scope of a link's counter: the sum over all (nvml.h)
)

// now is replaced in tests.
var now = time.Now

// Sensors implements Device. Each sensor is read once to find out whether it exists, which starts the period of
// counters; readings that fail for another reason may work later. A part of a GPU has few sensors: the others belong to
// the whole GPU, which other jobs may use.
func (d *device) Sensors() []Sensor {
	var sensors []Sensor
	for i := range readings {
		r := &readings[i]
		if n := len(sensors); n > 0 && sensors[n-1].Quantity == r.quantity || !d.hasFunction(r.function) {
			continue
		}
		s := Sensor{Quantity: r.quantity, Slow: r.slow, Read: func() (uint64, bool, error) {
			v, ret := r.read(d)
			return v, true, failure(ret)
		}}
		if r.count {
			s.Read = rate(r, d)
		}
		if _, _, err := s.Read(); !errors.Is(err, errNone) {
			sensors = append(sensors, s)
		}
	}
	return sensors
}

// rate converts a counter of bytes to bytes per second. If a counter decreases, it was reset or wrapped, and a new
// period starts.
func rate(r *reading, d *device) func() (uint64, bool, error) {
	var last uint64
	var since time.Time
	return func() (uint64, bool, error) {
		v, ret := r.read(d)
		if err := failure(ret); err != nil {
			return 0, false, err
		}
		at := now()
		elapsed, more := at.Sub(since), v-last
		known := !since.IsZero() && v >= last && elapsed > 0
		last, since = v, at
		if !known {
			return 0, false, nil
		}
		return math.Float64bits(float64(more) / elapsed.Seconds()), true, nil
	}
}

// counter reads a field as a number of bytes.
func (d *device) counter(field, scope uint32, unit uint64) (uint64, nvml.Return) {
	v, err := d.fieldValue(d.nvml, field, scope)
	return v * unit, err
}

// linkCounter sums a counter that exists per link only.
func (d *device) linkCounter(field uint32) (sum uint64, ret nvml.Return) {
	any := false
	for i := range uint32(nvml.NVLINK_MAX_LINKS) {
		v, ret := d.fieldValue(d.nvml, field, i)
		switch ret {
		case nvml.SUCCESS:
			any = true
			sum += v
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT: // the link does not exist
		default:
			return 0, ret
		}
	}
	if !any {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	return sum, nvml.SUCCESS
}

func (d *device) field(h nvml.Device, field, scope uint32) (uint64, error) {
	if !d.hasFunction(fieldValues) {
		return 0, fmt.Errorf("the driver has no %s", fieldValues)
	}
	v, ret := d.fieldValue(h, field, scope)
	return v, failure(ret)
}

// fieldValue reads a field with an unsigned or a nonnegative signed number.
func (d *device) fieldValue(h nvml.Device, field, scope uint32) (uint64, nvml.Return) {
	values := []nvml.FieldValue{{FieldId: field, ScopeId: scope}}
	if ret := h.GetFieldValues(values); ret != nvml.SUCCESS {
		return 0, ret
	}
	f := &values[0]
	if ret := nvml.Return(f.NvmlReturn); ret != nvml.SUCCESS {
		return 0, ret
	}
	bits := binary.NativeEndian.Uint64(f.Value[:])
	switch nvml.ValueType(f.ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return uint64(binary.NativeEndian.Uint32(f.Value[:])), nvml.SUCCESS
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return bits, nvml.SUCCESS
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		if int64(bits) >= 0 {
			return bits, nvml.SUCCESS
		}
	}
	return 0, nvml.ERROR_NOT_SUPPORTED
}
