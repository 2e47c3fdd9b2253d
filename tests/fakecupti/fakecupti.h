/* SPDX-License-Identifier: Apache-2.0
 *
 * A libcupti without a GPU. It exports the functions of CUPTI's activity API that a client of one subscriber needs, with
 * the behavior of the releases from CUDA 11.8 to 13.4, and hooks by which a program plays the calls that the driver
 * would trace. Everything is global to the process, as in the real one. Two things are stricter than there: what would
 * be a deadlock or a crash in some release ends the process with a line on stderr, and so does a buffer that is not
 * aligned or handed out twice.
 *
 * Set by the environment when it is loaded:
 *
 *   FAKECUPTI_VERSION=N         what cuptiGetVersion says, and which records there are (default 22, CUDA 12.4)
 *   FAKECUPTI_NO_DRIVER=1       as on a machine without a GPU
 *   FAKECUPTI_BUSY=1            another client has subscribed
 *   FAKECUPTI_CLOCK=host        stamps are on the clock that the program exports as ncclotf2_host_clock
 *   FAKECUPTI_FIRST=N           the first correlation id
 *   FAKECUPTI_WORKER=1          full buffers are given back by a thread; else by the launch that filled them
 *   FAKECUPTI_SHUFFLE=1         kernel records have buffers of their own, and buffers come back newest first
 *   FAKECUPTI_SWIFT=1           external ids are pushed and popped without a system call, and so in forked children, too
 *   FAKECUPTI_TRUTH=FILE        at the end: a JSON line per kernel, and one of counts (see truth.c); %p is the pid
 *   FAKECUPTI_FAULTS=LIST       of NAME or NAME:N, separated by commas:
 *     zero:N        every N-th kernel has no times      reversed:N  … ends before it starts
 *     early:N       … starts before its launch          drop:N      … is dropped, and counted
 *     unknown:N     every N-th buffer has a record of an unknown kind in its middle
 *     truncated:N   every N-th buffer ends within a record
 *     foreign       each flush gives back a buffer that nobody handed out
 *     clock:N       from the N-th flush on another client's clock is in force, 10^14 ns ahead
 *     slow:MS       a forced flush takes that long       slower:MS   so does each
 *     late:MS       a buffer comes back only so long after the client has unsubscribed
 *     enable:KIND   this kind is refused, with 35        flush       flushes fail, with 999
 *     subscribe:N   subscriptions are refused, with N    callbacks:N  … the registration of callbacks is
 */
#ifndef FAKECUPTI_H
#define FAKECUPTI_H

#include "../../internal/replay/host/gpu.h"

extern const struct gpu_hooks replay_gpu;

#endif
