-- SPDX-License-Identifier: Apache-2.0
-- Which links are slower than the others?
-- Tables: transfers (recorded with NCCL_OTF2_EVENTS=net or all). Units: GB/s (10^9 bytes), bytes. One row for each pair of ranks, the slowest
-- first: the median (nearest rank) of its transfers' rates, the median of all pairs' medians in the run, and how many times slower it is.
-- A pair counts with 8 transfers or more. Who is named for it, and how sure that is, says the report; this is the figures alone.
WITH rates AS (
  SELECT run, from_world_rank, to_world_rank, from_name, to_name, from_host, to_host, bytes, CAST(bytes AS DOUBLE) / duration_ns AS rate_gbs
  FROM transfers
  WHERE duration_ns > 0 AND from_name IS NOT NULL AND to_name IS NOT NULL
),
ordered AS (
  SELECT *,
    row_number() OVER (PARTITION BY run, from_world_rank, to_world_rank ORDER BY rate_gbs) AS nth,
    count(*) OVER (PARTITION BY run, from_world_rank, to_world_rank) AS n
  FROM rates
),
links AS (
  SELECT run, from_world_rank, to_world_rank, from_name, to_name, from_host, to_host, count(*) AS transfers, CAST(sum(bytes) AS BIGINT) AS bytes,
    max(CASE WHEN 2 * nth >= n AND 2 * (nth - 1) < n THEN rate_gbs END) AS median_gbs
  FROM ordered
  WHERE n >= 8
  GROUP BY run, from_world_rank, to_world_rank, from_name, to_name, from_host, to_host
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY run ORDER BY median_gbs) AS nth, count(*) OVER (PARTITION BY run) AS n FROM links
),
usual AS (
  SELECT run, max(CASE WHEN 2 * nth >= n AND 2 * (nth - 1) < n THEN median_gbs END) AS usual_gbs FROM placed GROUP BY run
)
SELECT p.run, p.from_name, p.to_name, p.from_host, p.to_host, p.transfers, p.bytes, p.median_gbs, u.usual_gbs, u.usual_gbs / p.median_gbs AS times_slower
FROM placed p
JOIN usual u ON p.run = u.run
ORDER BY p.run, times_slower DESC, p.from_name, p.to_name
