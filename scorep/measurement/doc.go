// SPDX-License-Identifier: Apache-2.0

// Package measurement reads the parts of a Score-P measurement that a merged archive needs: the processes and threads
// of its trace (Open), their pairing with recorded processes (Pair), and the conversion of a process's times to those
// of the measurement (Transfer).
package measurement
