// SPDX-License-Identifier: Apache-2.0

// Package otf2 writes and reads archives of the Open Trace Format 2, as libotf2 3.0 to 3.2 do, without it. It needs
// the standard library only.
//
// # Writing
//
// [Create] begins an archive that one process writes: an [ArchiveWriter] hands out the writers of its parts, keeps the
// counts that must agree, and writes the anchor at Close. Writers refuse events that go back in time, chunk sizes that
// readers refuse, records that fit no chunk, and on request regions that do not nest (EventWriterOptions.CheckNesting).
// Refusals are typed ([NestingError], [TimeError], [ChunkSizeError]) or wrap [ErrInvalid] or [ErrTooLarge], and nothing
// was written then.
//
// Several processes write an archive without talking to each other by the parts themselves: [CreateEventWriter]
// for each location, with ids and times of the process, and afterwards one program writes the definitions, mapping
// tables, clock offsets and the anchor. The example of shards shows it. What a crash leaves, of this
// or any other writer, is made whole by [Recover].
//
// # Reading
//
// [Open] reads anchor and global definitions. [Archive.Events] merges the events of all locations by time,
// [Archive.EventsOf] reads one, [Archive.EachLocation] several side by side; a [Selection] restricts locations, times
// and kinds. An [Event] has its fields as plain numbers in Args, and typed by the method named after its kind:
//
//	if event.Kind == otf2.EventMpiCollectiveEnd {
//		end := event.MpiCollectiveEnd() // a struct, by value
//		total += end.SizeSent
//	}
//
// Nothing is allocated per event. Memory is bounded by a window per location being read, open files by
// ReadOptions.MaxOpenFiles. Damage is reported where it is, as a *[FormatError], behind everything that is whole.
//
// # Files
//
// An archive with anchor "traces.otf2" consists of
//
//	traces.otf2        anchor: chunk sizes, counts, properties    WriteAnchor, ReadAnchor
//	traces.def         global definitions                         GlobalDefWriter, Definitions
//	traces/<L>.evt     events of location L                       EventWriter, Archive.EventsOf
//	traces/<L>.def     mapping tables and clock offsets of L      WriteLocalDefs, Archive.LocalDefs
//	traces.marker      markers (optional)                         MarkerWriter, Archive.Markers
//	traces/<L>.snap    snapshots of L (optional)                  Archive.SnapshotsOf
//	traces.<i>.thumb   thumbnails (optional)                      Archive.Thumbnail
//
// Nothing in a location's files names the location, so that they can be written before its global number is known
// and renamed. Ids in event files may be the location's own: the mapping tables turn them into global ones, and the
// clock offsets its times into those of the archive's clock, when the events are read.
//
// # Chunks
//
// All files but the anchor are sequences of chunks. Every chunk but the last has exactly the size that the anchor
// names; records do not cross chunks.
//
//	|<---------------------- chunk ---------------------->|<--------- last chunk --------->|
//	+--------+-------+--------+-------+-----+--------+----+--------+-------+-----+----+----+
//	| header | stamp | record | stamp | ... | record | 00 | header | stamp | ... | 02 | 01 |
//	+--------+-------+--------+-------+-----+--------+----+--------+-------+-----+----+----+
//	 03, byte order,  id, length, fields            unused                        end mark
//	 numbers of the
//	 first and last event
//
// Only event and snapshot files have time stamps: one precedes each event whose time is not that of the event before
// it, and one begins every chunk. Numbers are compressed to their length and that many bytes, or one byte ff for
// the undefined value.
//
// A file without end mark makes libotf2 loop. So an [EventWriter] keeps the file on disk whole at any time: the new
// bytes of a flush, their end mark included, are written behind the old mark, and only then the two bytes that
// replace it.
//
// # One table
//
// Every record is described once, in internal/gen/schema: id, version, fields with their encodings, types and id
// spaces. The tables by which records are read and written, the writers' methods, the typed events and definitions and
// the enumerations (files zz_*.go) are generated from it by go generate.
package otf2
