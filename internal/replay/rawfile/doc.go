// SPDX-License-Identifier: Apache-2.0

// Package rawfile makes of a recording what the plugin would have written had it been called: a raw file (spool file)
// for each process. So recordings can be looked at without playing them: no program is started, no plugin loaded, no
// time passes.
//
// What the plugin adds to NCCL's calls is made up where it is a number without meaning (process tags, handles), taken
// over where the recording is the plugin's own, and left unknown where only a job can tell it: GPUs, unless the
// recording names them, and whatever is no callback, as phases and CUDA's activities.
package rawfile
