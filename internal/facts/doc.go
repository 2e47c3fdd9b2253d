// SPDX-License-Identifier: Apache-2.0

// Package facts decodes the events that package regions writes. It is the one place that decides what an operation is,
// to which launch it belongs, which source its times have, how large it is and which ordinal it has in the sequence of
// its communicator. Reports, profiles, views and exports use its answers.
//
// Input are the events of each location (a row), in order, and [Names], which resolves their ids: those of an archive,
// or those of a process that is being recorded. [Reader] delivers each [Operation], [Region], [Transfer] and [NetSums].
// The grammar of a row:
//
//	row       = { region | operation | …}
//	region    = Enter row Leave                                    with TIMING_SOURCE: a launch by NCCL
//	operation = MpiCollectiveBegin … MpiCollectiveEnd              a collective that was launched alone
//	          | NonBlockingCollectiveRequest … NonBlockingCollectiveComplete
//	          | MpiIsend … MpiIsendComplete                        a message's sending end
//	          | MpiIrecvRequest … MpiIrecv                         and its receiving one
//
// An operation has the attributes of its own events and, for those that they lack, of the regions around it. Operations
// of one launch have one time, because NCCL stamps a launch as a whole. Memory is bounded by the open regions and
// operations of each row and a counter for each sequence of operations. A Reader is for one goroutine.
package facts
