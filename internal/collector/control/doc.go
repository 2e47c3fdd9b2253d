// SPDX-License-Identifier: Apache-2.0

// Package control gives orders to the collectors of a running job, and has their answers. Orders are a file in the
// experiment directory, replaced as a whole, which each collector looks at (Listener); answers are files in the shards
// (Status). So it works wherever the directory can be seen, and needs no sockets.
//
// A Controller asks the collectors how far each communicator is, and chooses for each an operation that none of its
// members has come to: from there on the order holds, on all of them.
package control
