// SPDX-License-Identifier: Apache-2.0

// Package rawfiles lists the raw files of an experiment directory: which processes wrote records without a collector?
package rawfiles
