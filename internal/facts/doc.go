// SPDX-License-Identifier: Apache-2.0

// Package facts reads back what package regions has written: it decodes the event grammar of archives, once. What an
// operation is, which launch it belongs to, where its times come from, how large it is and which place it has in its
// communicator's sequence is decided here; reports, profiles, views and exports ask.
//
// The grammar of a row, one location:
//
//	row       = { region | operation | …}
//	region    = Enter row Leave                                    with TIMING_SOURCE: a launch by NCCL
//	operation = MpiCollectiveBegin … MpiCollectiveEnd              a collective that was launched alone
//	          | NonBlockingCollectiveRequest … NonBlockingCollectiveComplete
//	          | MpiIsend … MpiIsendComplete                        a message's sending end
//	          | MpiIrecvRequest … MpiIrecv                         and its receiving one
//
// Attributes of an event tell of the operation; those of the region around it hold for all in it that do not say
// otherwise. Operations of one launch have one time, as NCCL stamps a launch as a whole.
//
// Events come from archives, where ids are the archive's, or from a process that is being recorded, where they are the
// process's: Names tells what they mean. Reading is streaming; what is kept is the open regions and operations of each
// row, and a number for each sequence of operations. A Reader is for one goroutine.
package facts
