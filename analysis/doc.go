// SPDX-License-Identifier: Apache-2.0

// Package analysis gets numbers from archives: whether an archive is sound (Check), and what the
// communication in it cost and who waited for whom (Operations), what the phases that the application
// marked took (Phases), what went over the network (Network), how it was recorded (SelfReport).
//
// Both stream once through the events of all locations in time order; memory is bounded by what is
// pending (operations that not every member has ended, messages under way), except that Operations
// keeps one duration per operation for its percentiles.
//
// Ranks are those of communicators unless said otherwise; times are nanoseconds of the archive's
// clock. What an archive says of itself (properties NCCL_OTF2::…) is written by package scorep.
package analysis
