-- SPDX-License-Identifier: Apache-2.0
-- When did ranks make the others wait?
-- Tables: runs, waits. Units: ns; window_ns since 1970. Each run is cut into 60 windows of one length; one row for each window and rank that
-- was waited for in it: what the others waited (each wait in the window in which it began), and its share of all waiting in the window.
-- Start-up is left out.
WITH placed AS (
  SELECT w.run, w.for_world_rank, w.for_rank_name, w.for_host, w.waited_ns, r.begin_ns, r.duration_ns,
    least(greatest(CAST(floor(CAST(w.begin_ns - r.begin_ns AS DOUBLE) * 60 / greatest(r.duration_ns, 1)) AS BIGINT), 0), 59) AS number
  FROM waits w
  JOIN runs r ON w.run = r.run
  WHERE NOT w.start_up
),
summed AS (
  SELECT run, number, begin_ns, duration_ns, for_world_rank, for_rank_name, for_host, count(*) AS waits, CAST(sum(waited_ns) AS BIGINT) AS caused_ns
  FROM placed
  GROUP BY run, number, begin_ns, duration_ns, for_world_rank, for_rank_name, for_host
)
SELECT run, begin_ns + CAST(floor(CAST(duration_ns AS DOUBLE) * number / 60) AS BIGINT) AS window_ns, for_world_rank AS world_rank,
  for_rank_name AS rank_name, for_host AS host, waits, caused_ns,
  CAST(caused_ns AS DOUBLE) / greatest(sum(caused_ns) OVER (PARTITION BY run, number), 1) AS share
FROM summed
ORDER BY run, number, caused_ns DESC, world_rank
