// SPDX-License-Identifier: Apache-2.0

// Package rawfile converts a recording into what the plugin would have written during it: a raw file (spool file) for
// each process. So recordings can be analyzed without playing them: no program is started, no plugin is loaded, and it
// takes no time.
//
// Numbers without meaning that the plugin adds to NCCL's calls (process tags, handles) are invented, unless the
// recording is the plugin's own and has them. Facts that only a job has are left unknown: GPUs, unless the recording
// names them, and everything that is not a callback, such as phases and CUDA activities.
package rawfile
