// SPDX-License-Identifier: Apache-2.0

// Package cupti decodes CUPTI's activity records to Go structs, correlates kernels with API calls and external ids, and
// maps CUPTI's times to another clock. It does not call CUPTI: its input are bytes copied from CUPTI's buffers.
//
//	rec, err := cupti.Parse(bytes, version)
//	switch rec := rec.(type) {
//	case *cupti.Kernel:
//		correlator.Activity(rec.Correlation, rec, now)
//	case *cupti.API:
//		correlator.API(rec, now)
//	…
//
// Record layouts are those of CUPTI 11.8 to 13.4 (testdata/cupti-abi.json; a test compares the tables of this package
// with it). Types are for one goroutine at a time.
package cupti
