// SPDX-License-Identifier: Apache-2.0

// Package cupti understands what CUPTI's activity API records: activity records as Go structs, which API call and
// which external correlation id a kernel belongs to, and what CUPTI's times are on another clock. It does not talk to
// CUPTI: bytes come in, copied from CUPTI's buffers by somebody else.
//
//	rec, err := cupti.Parse(bytes, version)
//	switch rec := rec.(type) {
//	case *cupti.Kernel:
//		correlator.Activity(rec.Correlation, rec, now)
//	case *cupti.API:
//		correlator.API(rec, now)
//	…
//
// Facts about records are those of CUPTI 11.8 to 13.4 (testdata/cupti-abi.json; a test holds the tables of this
// package to it). Types are used by one goroutine at a time.
package cupti
