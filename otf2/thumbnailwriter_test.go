// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// WriteThumbnail writes a thumbnail file, <archive>.<i>.thumb. The header announces the samples that t has, Declared
// is not used; every sample must have one value for each of Refs (ErrInvalid else). The file appears under its name
// when it is complete, replacing an older one.
func WriteThumbnail(path string, t *Thumbnail) error {
	for _, text := range []string{t.Name, t.Description} {
		if err := checkText(text); err != nil {
			return err
		}
	}
	for i := range t.Samples {
		if n := len(t.Samples[i].Values); n != len(t.Refs) {
			return fmt.Errorf("otf2: thumbnail %q: sample %d has %d values, want %d: %w", t.Name, i, n, len(t.Refs),
				ErrInvalid)
		}
	}
	w, err := createRecordFile(path, ThumbnailChunkSize, ThumbnailChunkSize)
	if err != nil {
		return err
	}
	b := append(append(w.start(), t.Name...), 0)
	b = append(append(b, t.Description...), 0)
	texts := len(b)
	b = append(b, byte(t.Type))
	b = appendC32(b, uint32(len(t.Samples)))
	b = appendNumbers(b, t.Refs)
	most := 1 + 5 + 5 + 9*len(t.Refs)
	err = w.emit(thumbnailHeader, b, most-(len(b)-texts))
	for i := range t.Samples {
		if err != nil {
			break
		}
		b := appendC64(w.start(), t.Samples[i].Baseline)
		b = appendNumbers(b, t.Samples[i].Values)
		err = w.emit(thumbnailSample, b, 9+5+9*len(t.Refs)-len(b))
	}
	if err != nil {
		w.abort()
		return err
	}
	return w.finish()
}

// appendNumbers writes a count and the numbers compressed.
func appendNumbers(b []byte, vs []uint64) []byte {
	b = appendC32(b, uint32(len(vs)))
	for _, v := range vs {
		b = appendC64(b, v)
	}
	return b
}
