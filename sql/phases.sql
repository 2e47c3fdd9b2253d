-- SPDX-License-Identifier: Apache-2.0
-- How long did the application's phases take, and on which rank the longest?
-- Tables: phases. Units: ns. One row for each kind of phase ("step *"): how often it was run through by all processes, times (percentiles are
-- nearest ranks), time in NCCL's API in it, the process with the most time in it and what that has more than the one with the least.
WITH ordered AS (
  SELECT *, row_number() OVER (PARTITION BY run, kind ORDER BY duration_ns) AS nth, count(*) OVER (PARTITION BY run, kind) AS n FROM phases
),
kinds AS (
  SELECT run, kind, depth, min(begin_ns) AS since_ns, count(*) AS phases, CAST(sum(duration_ns) AS BIGINT) AS total_ns, avg(duration_ns) AS avg_ns,
    min(duration_ns) AS min_ns, max(CASE WHEN 2 * nth >= n AND 2 * (nth - 1) < n THEN duration_ns END) AS p50_ns,
    max(CASE WHEN 100 * nth >= 99 * n AND 100 * (nth - 1) < 99 * n THEN duration_ns END) AS p99_ns, max(duration_ns) AS max_ns,
    CAST(sum(nccl_ns) AS BIGINT) AS nccl_ns
  FROM ordered
  GROUP BY run, kind, depth
),
processes AS (
  SELECT run, kind, rank_name, host, CAST(sum(duration_ns) AS BIGINT) AS process_ns FROM phases GROUP BY run, kind, rank_name, host
),
slowest AS (
  SELECT *, row_number() OVER (PARTITION BY run, kind ORDER BY process_ns DESC, rank_name) AS nth,
    count(*) OVER (PARTITION BY run, kind) AS n, min(process_ns) OVER (PARTITION BY run, kind) AS least_ns
  FROM processes
)
SELECT k.run, k.kind, k.depth, s.n AS ranks, k.phases, k.total_ns, k.avg_ns, k.min_ns, k.p50_ns, k.p99_ns, k.max_ns, k.nccl_ns,
  s.rank_name AS slowest_rank_name, s.host AS slowest_host, s.process_ns - s.least_ns AS spread_ns
FROM kinds k
JOIN slowest s ON k.run = s.run AND k.kind = s.kind
WHERE s.nth = 1
ORDER BY k.run, k.since_ns, k.depth, k.kind
