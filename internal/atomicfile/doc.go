// SPDX-License-Identifier: Apache-2.0

// Package atomicfile makes files that appear as a whole: readers find the old one or the new one, also when the program
// is interrupted, killed, or the machine loses power.
//
// A file is written under another name in the same folder (a new one, which nothing that lies there can redirect),
// brought to the disk, renamed, and the folder is brought to the disk. After an error, and after a signal where
// [RemoveOnSignals] was called, the other name is gone.
//
// There are two kinds of names. [Create] is for those in folders of ours: whatever stands there is replaced, never
// followed. [Output] is for names that a user gave: what is not a regular file (a terminal, a pipe, /dev/null,
// /dev/stdout) is written to as it is, and a symbolic link is followed, so that the file that it names is replaced and
// the link stays. It is followed only where it belongs to this user or to root: in a folder that others may write to,
// theirs could name anything; so with pipes, which could keep the program waiting for ever. Neither it nor
// [MakeFolder], which is for folders that a user gave, lets a result replace data.
package atomicfile
