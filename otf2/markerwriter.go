// SPDX-License-Identifier: Apache-2.0

package otf2

// MarkerWriter writes the markers of an archive, <archive>.marker: remarks about intervals of time, shown by
// tools beside the events. The file appears under its name at Close, replacing an older one.
type MarkerWriter struct{ recordFile }

// Record ids of marker files.
const (
	markerDef    = 5
	markerMarker = 6
)

// CreateMarkerWriter begins the file at path; chunkSize is the anchor's DefChunkSize, 0 means
// DefaultDefChunkSize.
func CreateMarkerWriter(path string, chunkSize uint64) (*MarkerWriter, error) {
	f, err := createRecordFile(path, chunkSize, DefaultDefChunkSize)
	if err != nil {
		return nil, err
	}
	return &MarkerWriter{*f}, nil
}

// DefMarker defines a kind of marker; the pair of group and category should occur once.
func (w *MarkerWriter) DefMarker(self MarkerRef, group, category string, severity MarkerSeverity) error {
	for _, s := range []string{group, category} {
		if err := checkText(s); err != nil {
			return err
		}
	}
	b := appendC32(w.start(), uint32(self))
	slack := 5 - len(b)
	b = append(append(b, group...), 0)
	b = append(append(b, category...), 0)
	return w.emit(markerDef, append(b, byte(severity)), slack)
}

// Marker writes a remark for the interval of the given duration from time on, in ticks. scope is 2^64-1 for
// MarkerScopeGlobal, else the id of the location, location group, system tree node, group or communicator.
func (w *MarkerWriter) Marker(time Timestamp, duration uint64, marker MarkerRef, scopeType MarkerScope, scope uint64,
	text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	b := appendC64(w.start(), uint64(time))
	b = appendC64(b, duration)
	b = appendC32(b, uint32(marker))
	b = append(b, byte(scopeType))
	b = appendC64(b, scope)
	slack := 9 + 9 + 5 + 1 + 9 - len(b)
	return w.emit(markerMarker, append(append(b, text...), 0), slack)
}

// Close ends the file and gives it its name. After an error of an earlier call, which it returns, no file appears.
func (w *MarkerWriter) Close() error { return w.finish() }

// Abort gives the file up: nothing appears under its name, an older file of that name stays.
func (w *MarkerWriter) Abort() { w.abort() }
