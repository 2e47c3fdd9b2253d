// SPDX-License-Identifier: Apache-2.0

package sql

import "fmt"

// Suffix is the suffix of a table's file name.
const Suffix = ".parquet"

const partForm = "-%04d-of-%04d" + Suffix

// PartFile returns the file name of a part of a table: "operations-0003-of-0008.parquet". Parts are numbered from 1.
func PartFile(table string, part, of int) string { return table + fmt.Sprintf(partForm, part, of) }

// PartOf returns which part of a table a file of that name is; ok is false if it is none.
func PartOf(name, table string) (part, of int, ok bool) {
	n, _ := fmt.Sscanf(name, table+partForm, &part, &of)
	return part, of, n == 2 && name == PartFile(table, part, of)
}
