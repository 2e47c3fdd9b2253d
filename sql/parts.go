// SPDX-License-Identifier: Apache-2.0

package sql

import "fmt"

// Suffix is what the name of a table's file has behind the table's.
const Suffix = ".parquet"

const partForm = "-%04d-of-%04d" + Suffix

// PartFile is the name of the file of a part of a table: "operations-0003-of-0008.parquet". Parts are numbered from 1.
func PartFile(table string, part, of int) string { return table + fmt.Sprintf(partForm, part, of) }

// PartOf tells which part of a table the file of that name is; false if it is none.
func PartOf(name, table string) (part, of int, ok bool) {
	n, _ := fmt.Sscanf(name, table+partForm, &part, &of)
	return part, of, n == 2 && name == PartFile(table, part, of)
}
