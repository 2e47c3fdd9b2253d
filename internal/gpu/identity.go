// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Errors of Open and Find; they are wrapped.
var (
	// ErrNoLibrary means that NVML is not available: no cgo, no driver, or no permission.
	ErrNoLibrary = errors.New("NVML is not available")
	// ErrNoDevice means that NVML knows no such device, or several possible ones.
	ErrNoDevice = errors.New("no such GPU")
	// ErrLost means that the device fell off the bus or was reset, and stays lost.
	ErrLost = errors.New("the GPU is lost")
)

// Wanted describes a device as the job's process knows it.
type Wanted struct {
	UUID    string // as CUDA reports it: "GPU-…" also for a part of a GPU (MIG); "" if unknown
	PCI     string // of the whole GPU; "" if unknown
	Ordinal int    // CUDA's number in the process, −1 if unknown

	// Variable looks up the environment with which the process was started; nil if it cannot be read.
	Variable func(name string) (value string, set bool)
}

// Library is access to the GPUs of this machine.
type Library interface {
	// Find returns the device described by w; ErrNoDevice if that is not certain.
	Find(w Wanted) (Device, error)
	Close()
}

// Device is a GPU, or a part of one (MIG).
type Device interface {
	Identity() Identity
	// Sensors lists the sensors that can be read now; unsupported ones are left out.
	Sensors() []Sensor
}

// Identity is the properties of a device that do not change during a job. Unknown ones are zero.
type Identity struct {
	Index  int    // NVML's number: GPUs in the order of their PCI addresses
	UUID   string // "GPU-…", or "MIG-…" for a part of a GPU
	PCI    string // "0000:07:00.0"
	Name   string
	Memory uint64 // bytes
	Driver string // version

	PCIeGeneration, PCIeWidth int // of the link at present; an idle link may be slower than its maximum

	NVLinks []NVLink // active ones
	MIGMode bool     // the GPU is divided, or will be after its next reset
	MIG     *MIG     // which part this is; nil for a whole GPU

	// Guess is how the device was found if CUDA in the process did not name it: "CUDA_VISIBLE_DEVICES" or "ordinal".
	Guess string
}

// NVLink is an active link.
type NVLink struct {
	Link    int
	Version string // of NVLink, such as "4.0"; "" if unknown
	Speed   int    // MB/s in one direction, as NVML gives it; 0 if unknown
	Peer    string // PCI address at the other end, "" if unknown
	Switch  bool   // the other end is a switch, not a GPU
}

// MIG is a part of a GPU.
type MIG struct {
	Parent          string // UUID of the GPU
	GPUInstance     int    // −1 if unknown
	ComputeInstance int    // −1 if unknown
}

// identity is a UUID as CUDA and NVML write it.
type identity struct {
	mig      bool   // of a part of a GPU
	uuid     string // canonical, in lower case, without prefix
	instance bool   // MIG-GPU-<uuid of the GPU>/<GPU instance>/<compute instance>, as drivers before R470 named parts

	gpuInstance, computeInstance int // if instance
}

// parseID reads "GPU-<uuid>", "MIG-<uuid>", "MIG-GPU-<uuid>/<gi>/<ci>" and a UUID without prefix.
func parseID(text string) (identity, error) {
	var id identity
	rest := text
	if r, ok := cutPrefix(rest, "MIG-"); ok {
		id.mig, rest = true, r
		if r, ok := cutPrefix(rest, "GPU-"); ok {
			parts := strings.Split(r, "/")
			if len(parts) != 3 {
				return identity{}, fmt.Errorf("%q is no UUID of a MIG device", text)
			}
			gi, err1 := strconv.ParseUint(parts[1], 10, 16)
			ci, err2 := strconv.ParseUint(parts[2], 10, 16)
			if err1 != nil || err2 != nil {
				return identity{}, fmt.Errorf("%q is no UUID of a MIG device", text)
			}
			id.instance, id.gpuInstance, id.computeInstance, rest = true, int(gi), int(ci), parts[0]
		}
	} else if r, ok := cutPrefix(rest, "GPU-"); ok {
		rest = r
	}
	u, err := uuid.Parse(rest)
	if err != nil || len(rest) != 36 { // the package takes other forms of UUIDs, too
		return identity{}, fmt.Errorf("%q is no UUID of a GPU", text)
	}
	id.uuid = u.String()
	return id, nil
}

// String returns the form that parseID reads, in lower case except for the prefix.
func (id identity) String() string {
	switch {
	case id.instance:
		return fmt.Sprintf("MIG-GPU-%s/%d/%d", id.uuid, id.gpuInstance, id.computeInstance)
	case id.mig:
		return "MIG-" + id.uuid
	}
	return "GPU-" + id.uuid
}

// cutPrefix is strings.CutPrefix for an upper-case prefix, ignoring case, as CUDA does.
func cutPrefix(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// canonicalPCI writes a PCI address as Linux does, domain:bus:device.function, whatever the width of its domain; the
// function may be missing. It returns "" for any other text.
func canonicalPCI(text string) string {
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) != 3 {
		return ""
	}
	device, function, ok := strings.Cut(parts[2], ".")
	if !ok {
		function = "0"
	}
	var n [4]uint64
	for i, s := range []string{parts[0], parts[1], device, function} {
		var err error
		if n[i], err = strconv.ParseUint(s, 16, 32); err != nil {
			return ""
		}
	}
	if n[1] > 0xff || n[2] > 0x1f || n[3] > 7 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])
}
