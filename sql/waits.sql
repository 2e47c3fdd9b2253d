-- SPDX-License-Identifier: Apache-2.0
-- How long did each rank wait for others, and how long did others wait for it?
-- Tables: waits. Units: ns. One row for each rank that waited or was waited for, the one that caused most first. Start-up is left out.
-- waited_ns is what it waited (below_ns of that in waits not longer than their uncertainty), caused_ns what others waited for it, in last
-- operations, max_caused_ns in one of them.
WITH suffered AS (
  SELECT run, world_rank, rank_name, host, count(*) AS waits, CAST(sum(waited_ns) AS BIGINT) AS waited_ns,
    CAST(coalesce(sum(uncertainty_ns), 0) AS BIGINT) AS uncertainty_ns,
    CAST(sum(CASE WHEN uncertainty_ns IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS unstated,
    CAST(sum(CASE WHEN waited_ns <= uncertainty_ns THEN waited_ns ELSE 0 END) AS BIGINT) AS below_ns
  FROM waits
  WHERE NOT start_up
  GROUP BY run, world_rank, rank_name, host
),
operations_waited_for AS ( -- the waits of a collective together; each message is one of its own
  SELECT run, for_world_rank, for_rank_name, for_host, sum(waited_ns) AS caused_ns
  FROM waits
  WHERE NOT start_up
  GROUP BY run, for_world_rank, for_rank_name, for_host, comm, function, ordinal,
    CASE WHEN peer IS NULL THEN -1 ELSE rank END, CASE WHEN peer IS NULL THEN -1 ELSE peer END, CASE WHEN peer IS NULL THEN 0 ELSE begin_ns END
),
caused AS (
  SELECT run, for_world_rank, for_rank_name, for_host, CAST(sum(caused_ns) AS BIGINT) AS caused_ns, count(*) AS last,
    CAST(max(caused_ns) AS BIGINT) AS max_caused_ns
  FROM operations_waited_for
  GROUP BY run, for_world_rank, for_rank_name, for_host
)
SELECT coalesce(s.run, c.run) AS run, coalesce(s.world_rank, c.for_world_rank) AS world_rank,
  coalesce(s.rank_name, c.for_rank_name) AS rank_name, coalesce(s.host, c.for_host) AS host,
  coalesce(s.waits, 0) AS waits, coalesce(s.waited_ns, 0) AS waited_ns, coalesce(s.uncertainty_ns, 0) AS uncertainty_ns,
  coalesce(s.unstated, 0) AS unstated, coalesce(s.below_ns, 0) AS below_ns,
  coalesce(c.caused_ns, 0) AS caused_ns, coalesce(c.last, 0) AS last, coalesce(c.max_caused_ns, 0) AS max_caused_ns
FROM suffered s
FULL OUTER JOIN caused c ON s.run = c.run AND s.world_rank = c.for_world_rank
ORDER BY run, caused_ns DESC, world_rank
