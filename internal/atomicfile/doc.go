// SPDX-License-Identifier: Apache-2.0

// Package atomicfile writes files that appear complete or not at all: readers find the old content or the new, even if
// the program is interrupted or killed, or the machine loses power.
//
// A file is written under a new temporary name in the same folder, synced, and renamed; then the folder is synced.
// After an error, and after a signal if [RemoveOnSignals] was called, the temporary file is gone.
//
// [Create] is for names in the program's own folders: it replaces the name and never follows a link. [Output] is for
// names from the user: anything but a regular file (a terminal, a pipe, /dev/null, /dev/stdout) is written to in place,
// and of a symbolic link the target is replaced. Links and pipes must belong to this user or root: in a folder that
// others may write to, a foreign link could name any file, and a foreign pipe could block the program. [Output] and
// [MakeFolder], which is for folders from the user, refuse to replace data.
// [MakeFolder], which is for folders that a user gave, lets a result replace data.
package atomicfile
