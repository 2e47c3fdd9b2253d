// SPDX-License-Identifier: Apache-2.0

package provenance

// GPUFacts is what the driver (NVML) reports of a GPU; what it did not report is zero.
type GPUFacts struct {
	Index  int    `json:"index"` // NVML's number, −1 if unknown
	Name   string `json:"name,omitempty"`
	Memory uint64 `json:"memory,omitempty"` // bytes
	Driver string `json:"driver,omitempty"` // version

	PCIeGeneration int      `json:"pcieGeneration,omitempty"` // of the link as it was
	PCIeWidth      int      `json:"pcieWidth,omitempty"`
	NVLinks        []NVLink `json:"nvlinks,omitempty"` // active ones
	MIGMode        bool     `json:"migMode,omitempty"` // the GPU is divided
	MIG            *MIG     `json:"mig,omitempty"`     // the part that the process uses; nil: all of it

	// Guess is how the GPU was identified without CUDA: "CUDA_VISIBLE_DEVICES" or "ordinal".
	Guess string `json:"guess,omitempty"`
}

// NVLink is an active link of a GPU.
type NVLink struct {
	Link    int    `json:"link"`
	Version string `json:"version,omitempty"` // of NVLink, such as "4.0"
	Speed   int    `json:"speed,omitempty"`   // MB/s in one direction
	Peer    string `json:"peer,omitempty"`    // PCI address of the other end
	Switch  bool   `json:"switch,omitempty"`  // the other end is a switch
}

// MIG is a part of a GPU.
type MIG struct {
	Parent          string `json:"parent,omitempty"` // UUID of the GPU
	GPUInstance     int    `json:"gpuInstance"`      // −1 if unknown
	ComputeInstance int    `json:"computeInstance"`  // −1 if unknown
}
