// SPDX-License-Identifier: Apache-2.0

// Package gpu tells which GPUs the devices of a job's process are, and reads their sensors, through NVML, the
// management library of NVIDIA's driver.
//
// It runs beside the job, never in it. NVML is opened when it is asked for (dlopen of libnvidia-ml.so.1), by go-nvml,
// which needs cgo: without cgo, without the driver, or without the right to use it, [Open] says so and nothing else
// changes. A function that the driver's library lacks is not called: go-nvml would end the program.
//
// A [Library] and its devices are for one goroutine at a time, except that slow sensors may be read beside the others.
// Calls can block for as long as the driver wants.
package gpu
