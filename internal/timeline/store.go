// SPDX-License-Identifier: Apache-2.0

package timeline

// store is what has been read: streams in the order of the events, and what is only known later, or found elsewhere, in
// the order in which it is needed. Keys that are addresses are in the order of the page's bars.
type store struct {
	temp    temp
	kept    int
	spool   spool // of all streams
	sorters []*sorter

	deep   *sorter // address: region record, of those at maxDepth
	claims *sorter // address, preference: address of what asked for the region; number of the region
	// address (from that of the one before), address of what asked for it; where that is not what it lies in
	parents     stream
	kids        *sorter // address, place of a child among all regions: address of the child
	waits       *sorter // address, order: length, kind, rank that was waited for, whether it was the first operation
	operations  *sorter // address, order: instance, sent, received, root, size, event
	asked       *sorter // address, event: attributes of an operation that was launched together with others
	ends        *sorter // transfer: length
	askers      *sorter // transfer: address of what asked for it
	waitsInTime *sorter // begin of a wait's operation, order: see reader.keepWait
	chargesOf   *sorter // begin of an operation, order: see charges.put

	instances     stream // kind, communicator, function, ordinal, expected parts
	instanceCount uint64
	parts         *sorter // instance, place in it: rank, address

	steps pathSteps // of critical paths
}

const (
	// keptBytes is what a sorter keeps in memory before it writes, twice.
	keptBytes = 2 << 20
	// piecesBytes is about what the streams of all rows keep before they write.
	piecesBytes   = 64 << 20
	streamsPerRow = 4
	// A piece of a stream.
	leastPiece, mostPiece = 2 << 10, 8 << 10
)

func newStore(kept int) *store {
	s := &store{kept: kept}
	s.spool.temp, s.steps.spool.temp = &s.temp, &s.temp
	s.parents = stream{to: &s.spool, piece: mostPiece}
	s.instances = s.parents
	for _, at := range []**sorter{&s.deep, &s.claims, &s.kids, &s.waits, &s.operations, &s.asked, &s.ends, &s.askers,
		&s.parts, &s.chargesOf, &s.waitsInTime} {
		*at = s.newSorter()
	}
	return s
}

func (s *store) newSorter() *sorter {
	one := newSorter(&s.temp, s.kept)
	s.sorters = append(s.sorters, one)
	return one
}

// Close gives back what the data take of the temporary folder.
func (s *store) Close() error {
	s.spool.close()
	s.steps.spool.close()
	for _, one := range s.sorters {
		one.close()
	}
	return nil
}
