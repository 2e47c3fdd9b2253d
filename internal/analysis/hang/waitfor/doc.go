// SPDX-License-Identifier: Apache-2.0

// Package waitfor says why a job does not continue and which ranks are responsible: a rank is missing, ranks use
// communicators in opposite orders, arguments do not match, or a transfer is stuck.
//
// It searches a wait-for graph. The nodes are the operations that not all members have ended, from the shards' tables
// of pending operations. Operation A waits for operation B if a member of A has not come to it because it is in B: it
// has not called A yet, or it has called A and its GPU is still in B. The search ends at operations that wait for no
// other one, and at cycles. The graph is available both while a job runs and after it has died; unify stores the
// result in the archive's properties ([OfArchive]).
//
// The package does not judge times: delays are left to package causes.
package waitfor
