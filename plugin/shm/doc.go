// SPDX-License-Identifier: Apache-2.0

// Package shm is the Go side of the memory that the plugin and its collector share, and of the spool
// files that the plugin writes where no collector could be started. The contract is plugin/shm.h.
//
// One job process has one mapping. The plugin writes records into rings; the collector reads them
// and hands memory back:
//
//	ring ─► chunk ─► chunk ─► chunk ─► 0
//	         │        │        └ the owner writes here, and publishes by raising `committed`
//	         │        └ read position
//	         └ durable position: older chunks have been given back
//
// All times in here are ticks of the clock that Header.ClockSource names, unless a name says
// otherwise.
//
// This is the only package of the module that uses package unsafe: for the mapping, and for the
// field table that decodes records.
package shm
