// SPDX-License-Identifier: Apache-2.0

package gpu

// Quantity is a quantity that sensors measure. A value v stands for v · 10^Exponent of the unit.
type Quantity struct {
	Name, Description string
	Unit              string // "" for a bit mask
	Exponent          int
	Float             bool // values are the bits of a float64, else unsigned integers
	Period            bool // a value covers the time since the last one; otherwise it is of a moment
}

// Quantities lists all quantities, by Sensor.Quantity. NVML defines the values (nvml.h).
var Quantities = [...]Quantity{
	Power: {Name: "GPU power", Unit: "W", Exponent: -3,
		Description: "Power drawn by the GPU and its memory; from Ampere on (but not GA100) NVML gives the mean of " +
			"the last second"},
	smClock:     {Name: "GPU SM clock", Unit: "Hz", Exponent: 6, Description: "Clock of the multiprocessors"},
	memoryClock: {Name: "GPU memory clock", Unit: "Hz", Exponent: 6, Description: "Clock of the memory"},
	utilization: {Name: "GPU utilization", Unit: "%",
		Description: "Share of NVML's last sample period (1/6 s to 1 s) in which a kernel ran"},
	memoryUtilization: {Name: "GPU memory utilization", Unit: "%",
		Description: "Share of NVML's last sample period (1/6 s to 1 s) in which memory was read or written"},
	Temperature: {Name: "GPU temperature", Unit: "°C", Description: "Temperature of the GPU's die"},
	clockReasons: {Name: "GPU clock limits", Unit: "bits",
		Description: "Why the clocks are not higher: bits of nvmlClocksEventReasons… (0x1 idle, 0x4 power cap, 0x8 " +
			"hardware slowdown, 0x20 software thermal, 0x40 hardware thermal, 0x80 power brake)"},
	memoryUsed: {Name: "GPU memory used", Unit: "B", Description: "Memory in use, by whichever process"},
	NVLinkSent: {Name: "NVLink sent", Unit: "B/s", Float: true, Period: true,
		Description: "Data sent over all links since the value before"},
	nvLinkReceived: {Name: "NVLink received", Unit: "B/s", Float: true, Period: true,
		Description: "Data received over all links since the value before"},
	PCIeSent: {Name: "PCIe sent", Unit: "B/s", Float: true,
		Description: "Data sent by the GPU over PCIe, in the 20 ms before"},
	pcIeReceived: {Name: "PCIe received", Unit: "B/s", Float: true,
		Description: "Data received by the GPU over PCIe, in the 20 ms before"},
}

// Indices of Quantities.
const (
	Power = iota
	smClock
	memoryClock
	utilization
	memoryUtilization
	Temperature
	clockReasons
	memoryUsed
	NVLinkSent
	nvLinkReceived
	PCIeSent
	pcIeReceived
)

// Sensor reads one quantity of a device.
type Sensor struct {
	Quantity int // index of Quantities
	// Slow means that a reading takes 20 ms or more, because the driver counts for that long.
	Slow bool
	// Read returns a value; known is false if there is none yet, as the first reading of a counter only starts a
	// period. Errors: ErrLost, wrapped, if no further reading can succeed; others may be temporary.
	Read func() (value uint64, known bool, err error)
}
