// SPDX-License-Identifier: Apache-2.0

package timeline

// store is the data read: streams in the order of events, and sorters for what becomes known later or elsewhere, in the
// order in which it is needed. Keys that are addresses have the order of the page's bars.
type store struct {
	temp    temp
	kept    int
	spool   spool // of all streams
	sorters []*sorter

	deep   *sorter // address: record of a region at maxDepth
	claims *sorter // address, preference: address of the region's cause; number of the region
	// address (from that of the one before), address of the cause, if that is not the enclosing region
	parents     stream
	kids        *sorter // address, place of a child among all regions: address of the child
	waits       *sorter // address, order: length, kind, rank that was waited for, whether it was the first operation
	operations  *sorter // address, order: instance, sent, received, root, size, event
	asked       *sorter // address, event: attributes of an operation that was launched together with others
	ends        *sorter // transfer: length
	askers      *sorter // transfer: address of its cause
	waitsInTime *sorter // begin of a wait's operation, order: see reader.keepWait
	chargesOf   *sorter // begin of an operation, order: see charges.put

	instances     stream // kind, communicator, function, ordinal, expected parts
	instanceCount uint64
	parts         *sorter // instance, place in it: rank, address

	steps pathSteps // of critical paths
}

const (
	// keptBytes is the memory for entries of a sorter, which has twice that.
	keptBytes = 2 << 20
	// piecesBytes is the approximate memory for the streams of all rows.
	piecesBytes   = 64 << 20
	streamsPerRow = 4
	// Size of a piece of a stream.
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

// Close frees the temporary files.
func (s *store) Close() error {
	s.spool.close()
	s.steps.spool.close()
	for _, one := range s.sorters {
		one.close()
	}
	return nil
}
