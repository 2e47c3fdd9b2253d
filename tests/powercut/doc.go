// SPDX-License-Identifier: Apache-2.0

// Package powercut says what may be on the disk after a power cut. It records, with strace, what programs write, rename
// and bring to the disk; then it replays that up to any moment into a file system that has kept what had to be there,
// and of the rest what chance wants.
//
// What a file system owes is what POSIX says, and no more:
//
//   - what was in a file when fsync or fdatasync of it began is there once that has returned; of later writes any may be there or not,
//     also its size without its data, which then reads as zeros;
//   - the names in a folder are there once fsync of the folder has returned; of later changes any may be there or not. A rename is
//     there as a whole or not.
//
// Journals keep an order among the names that are not synced; that is one of the cases here.
package powercut
