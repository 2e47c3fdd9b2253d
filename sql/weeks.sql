-- SPDX-License-Identifier: Apache-2.0
-- How did waiting and bandwidth go over the weeks, and which rank and host made others wait?
-- Tables: runs, operations, waits, of as many runs as there are. Units: ns, share of the ranks' time, GB/s (10^9 bytes). One row for each week
-- (by its Monday, UTC): its runs, their time, the share of the ranks' time that went into waiting (start-up left out), the median bus
-- bandwidth of AllReduces of a mebibyte and more on single ranks (nearest rank; null: there are none), and who was waited for most.
WITH dated AS (
  SELECT run, ranks, duration_ns, CAST(date_trunc('week', DATE '1970-01-01' + CAST(floor(begin_ns / 864e11) AS INT)) AS DATE) AS week FROM runs
),
rates AS (
  SELECT d.week, o.busbw_gbs, row_number() OVER (PARTITION BY d.week ORDER BY o.busbw_gbs) AS nth, count(*) OVER (PARTITION BY d.week) AS n
  FROM operations o
  JOIN dated d ON o.run = d.run
  WHERE o.function = 'AllReduce' AND o.size_bytes >= 1048576 AND o.busbw_gbs IS NOT NULL AND NOT o.start_up
),
speeds AS (
  SELECT week, max(CASE WHEN 2 * nth >= n AND 2 * (nth - 1) < n THEN busbw_gbs END) AS allreduce_busbw_gbs FROM rates GROUP BY week
),
blamed AS (
  SELECT d.week, w.for_host, w.for_rank_name, CAST(sum(w.waited_ns) AS BIGINT) AS caused_ns
  FROM waits w
  JOIN dated d ON w.run = d.run
  WHERE NOT w.start_up
  GROUP BY d.week, w.for_host, w.for_rank_name
),
worst AS (
  SELECT *, row_number() OVER (PARTITION BY week ORDER BY caused_ns DESC, for_host, for_rank_name) AS nth,
    CAST(sum(caused_ns) OVER (PARTITION BY week) AS BIGINT) AS waited_ns
  FROM blamed
),
weeks AS (
  SELECT week, count(*) AS runs, CAST(sum(duration_ns) AS BIGINT) AS duration_ns, sum(CAST(duration_ns AS DOUBLE) * ranks) AS ranks_ns
  FROM dated
  GROUP BY week
)
SELECT k.week, k.runs, k.duration_ns, coalesce(w.waited_ns, 0) AS waited_ns,
  CASE WHEN k.ranks_ns > 0 THEN coalesce(w.waited_ns, 0) / k.ranks_ns END AS waited_share,
  s.allreduce_busbw_gbs, w.for_host AS worst_host, w.for_rank_name AS worst_rank_name, w.caused_ns AS worst_caused_ns
FROM weeks k
LEFT JOIN speeds s ON k.week = s.week
LEFT JOIN worst w ON k.week = w.week AND w.nth = 1
ORDER BY k.week
