-- SPDX-License-Identifier: Apache-2.0
-- What became slower or faster from one run to the other?
-- Tables: runs, operations. Units: ns, GB/s (10^9 bytes), bytes. Of the runs that are there the one that began first is a, the last b. One row
-- for each kind of operation that both have: the median time (nearest rank, without start-up, of operations with times of their own), and how
-- many times longer it takes in b. nccl-otf2 diff says what of that is more than chance.
WITH ends AS (
  SELECT run, row_number() OVER (ORDER BY begin_ns, run) AS from_first, row_number() OVER (ORDER BY begin_ns DESC, run DESC) AS from_last FROM runs
),
sides AS (
  SELECT run, CASE WHEN from_first = 1 THEN 'a' ELSE 'b' END AS side FROM ends WHERE from_first = 1 OR from_last = 1
),
instances AS (
  SELECT s.side, o.comm, o.function, o.ordinal, CASE WHEN o.peer IS NULL THEN -1 ELSE o.rank END AS own_rank, coalesce(o.peer, -1) AS other_rank,
    max(o.ranks) AS ranks, max(o.datatype) AS datatype, max(o.size_bytes) AS size_bytes, max(o.bus_factor) AS bus_factor,
    avg(CAST(o.duration_ns AS DOUBLE) / greatest(o.launched_equal, 1)) AS time_ns
  FROM operations o
  JOIN sides s ON o.run = s.run
  WHERE (o.peer IS NOT NULL OR o.alike) AND (NOT o.grouped OR o.launched_equal > 0)
  GROUP BY s.side, o.comm, o.function, o.ordinal, CASE WHEN o.peer IS NULL THEN -1 ELSE o.rank END, coalesce(o.peer, -1)
  HAVING NOT bool_or(o.start_up) AND min(o.timing_source) = max(o.timing_source) AND max(o.timing_source) <> 'enqueue'
    AND count(o.timing_source) = count(*) AND (max(o.peer) IS NOT NULL OR count(*) = max(o.members))
),
ordered AS (
  SELECT *,
    row_number() OVER (PARTITION BY side, function, datatype, size_bytes, ranks ORDER BY time_ns) AS nth,
    count(*) OVER (PARTITION BY side, function, datatype, size_bytes, ranks) AS n
  FROM instances
),
medians AS (
  SELECT side, function, coalesce(datatype, '') AS datatype, size_bytes, ranks, count(*) AS operations, max(bus_factor) AS bus_factor,
    max(CASE WHEN 2 * nth >= n AND 2 * (nth - 1) < n THEN time_ns END) AS median_ns
  FROM ordered
  GROUP BY side, function, coalesce(datatype, ''), size_bytes, ranks
)
SELECT a.function, a.datatype, a.size_bytes, a.ranks, a.operations AS operations_a, b.operations AS operations_b,
  a.median_ns AS median_a_ns, b.median_ns AS median_b_ns,
  CASE WHEN a.median_ns > 0 THEN a.size_bytes / a.median_ns * a.bus_factor END AS busbw_a_gbs,
  CASE WHEN b.median_ns > 0 THEN b.size_bytes / b.median_ns * b.bus_factor END AS busbw_b_gbs,
  CASE WHEN a.median_ns > 0 THEN b.median_ns / a.median_ns END AS times_longer
FROM medians a
JOIN medians b ON a.function = b.function AND a.datatype = b.datatype AND a.size_bytes = b.size_bytes AND a.ranks = b.ranks
WHERE a.side = 'a' AND b.side = 'b'
ORDER BY times_longer DESC, a.function, a.size_bytes, a.ranks, a.datatype
