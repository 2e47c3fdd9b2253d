// SPDX-License-Identifier: Apache-2.0

// Package gpu identifies the GPUs of a job's processes and reads their sensors, through NVML, the management library of
// NVIDIA's driver. It runs beside the job, never in it.
//
// go-nvml opens libnvidia-ml.so.1 when it is first needed, and needs cgo. Without cgo, without the driver, or without
// permission, [Open] returns an error and the rest of the program works as before. Functions that the driver's library
// lacks are not called, because go-nvml would end the program.
//
// A [Library] and its devices must be used by one goroutine at a time, except that slow sensors may be read
// concurrently. Calls can block for an unlimited time in the driver.
package gpu
