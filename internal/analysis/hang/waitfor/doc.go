// SPDX-License-Identifier: Apache-2.0

// Package waitfor says what keeps a job from going on, and whose doing that is: a rank that is missing, communicators
// that ranks use in opposite orders, arguments that do not fit together, a transfer that is stuck.
//
// It looks at a wait-for graph. Its nodes are operations that not all members have ended, as the shards' tables of
// pending operations tell. An operation waits for another one where a member has not come to the first because it is in
// the second: it never called the first, or has called it and its GPU is still in the second. Operations that wait for
// none are where the search ends, and so are cycles. Both is known while the job runs and when it has died; unify
// leaves the answer in the archive's properties ([OfArchive]).
//
// It decides nothing about times: what only delayed a job is package causes' matter.
package waitfor
