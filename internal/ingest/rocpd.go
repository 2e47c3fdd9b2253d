// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
)

var rocpdTables = []wantedTable{{Name: "rocpd_metadata", Prefix: true, Columns: []string{"tag", "value"}}}

type rocpdFile struct{ path string }

func newRocpdFile(path string) *rocpdFile { return &rocpdFile{path: path} }

func (f *rocpdFile) addRow(*tableRow) error { return nil }

func (f *rocpdFile) finish(*importer) ([]*tracedProcess, error) {
	return nil, errors.New("a database of rocprofv3, which is not read yet")
}
