// SPDX-License-Identifier: Apache-2.0

// Package jobfolder names the folders of several jobs that share an experiment directory: where is a job's result, and
// which is the newest?
package jobfolder
