-- SPDX-License-Identifier: Apache-2.0
-- How much did ranks send each other over the network, and how fast?
-- Tables: transfers (recorded with NCCL_OTF2_EVENTS=net or all). Units: bytes, ns, GB/s (10^9 bytes). One row for each pair of ranks.
-- busy_ns is the time during which at least one of the transfers was under way; bandwidth_gbs is bytes by that. "n/a": not known.
WITH sent AS (
  SELECT run, coalesce(from_name, 'n/a') AS from_name, coalesce(from_host, 'n/a') AS from_host,
    coalesce(to_name, 'n/a') AS to_name, coalesce(to_host, 'n/a') AS to_host, coalesce(from_world_rank, -1) AS from_world_rank,
    coalesce(to_world_rank, -1) AS to_world_rank, bytes, begin_ns, coalesce(end_ns, begin_ns) AS until_ns
  FROM transfers
),
ordered AS (
  SELECT *,
    max(until_ns) OVER (PARTITION BY run, from_world_rank, to_world_rank ORDER BY begin_ns, until_ns
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_ns
  FROM sent
),
pairs AS (
  SELECT run, from_name, from_host, to_name, to_host, from_world_rank, to_world_rank, count(*) AS transfers, CAST(sum(bytes) AS BIGINT) AS bytes,
    CAST(sum(greatest(until_ns - greatest(begin_ns, coalesce(covered_ns, begin_ns)), 0)) AS BIGINT) AS busy_ns
  FROM ordered
  GROUP BY run, from_name, from_host, to_name, to_host, from_world_rank, to_world_rank
)
SELECT run, from_name, from_host, to_name, to_host, transfers, bytes, busy_ns,
  CASE WHEN busy_ns > 0 THEN CAST(bytes AS DOUBLE) / busy_ns ELSE 0e0 END AS bandwidth_gbs
FROM pairs
ORDER BY run, from_world_rank, to_world_rank
