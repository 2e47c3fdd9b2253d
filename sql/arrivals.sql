-- SPDX-License-Identifier: Apache-2.0
-- Who was late to each collective, by how much, and what the others waited for it?
-- Tables: operations. Units: ns on the archive's clock; first_ns and last_ns since 1970. One row for each collective whose members'
-- times compare. The report leaves those with start_up out of its sums: the first collective of a communicator that has more.
WITH parts AS (
  SELECT run, communicator, comm, function, ordinal, wait_kind, rank, world_rank, rank_name, host, begin_ns, end_ns, leads, members,
    coalesce(rank = root, false) AS is_root,
    CASE
      WHEN timing_source = 'gpu' THEN 4
      WHEN timing_source = 'network' THEN 3
      WHEN timing_source = 'call' THEN 2
      WHEN max(timing_source) OVER (PARTITION BY run) IS NULL THEN 1 -- the archive does not tell sources: all times are of one kind
      ELSE 0 -- says nothing of when the operation ran
    END AS quality
  FROM operations
  WHERE wait_kind IS NOT NULL AND alike
),
counted AS (
  SELECT *,
    count(*) OVER (PARTITION BY run, comm, function, ordinal) AS came,
    count(*) OVER (PARTITION BY run, comm, function, ordinal, quality) AS came_with,
    min(CASE WHEN leads THEN 1 ELSE 0 END) OVER (PARTITION BY run, comm, function, ordinal) AS led,
    max(end_ns) OVER (PARTITION BY run, comm, function, ordinal) AS done_ns
  FROM parts
),
complete AS ( -- all members have ended it, and it stands for its launch
  SELECT *,
    min(done_ns) OVER (PARTITION BY run, comm) AS first_done_ns,
    max(CASE WHEN quality > 0 AND came_with > 1 THEN quality END) OVER (PARTITION BY run, comm, function, ordinal) AS best
  FROM counted
  WHERE came = members AND led = 1
),
compared AS (
  SELECT *,
    min(begin_ns) OVER (PARTITION BY run, comm, function, ordinal) AS first_ns,
    max(begin_ns) OVER (PARTITION BY run, comm, function, ordinal) AS last_ns,
    max(CASE WHEN is_root THEN begin_ns END) OVER (PARTITION BY run, comm, function, ordinal) AS root_ns,
    max(CASE WHEN NOT is_root THEN begin_ns END) OVER (PARTITION BY run, comm, function, ordinal) AS others_ns,
    row_number() OVER (PARTITION BY run, comm, function, ordinal ORDER BY begin_ns DESC, rank) AS from_last,
    row_number() OVER (PARTITION BY run, comm, function, ordinal ORDER BY
      CASE WHEN wait_kind = 'late broadcast' AND NOT is_root OR wait_kind = 'early reduce' AND is_root THEN 1 ELSE 0 END,
      begin_ns DESC, rank) AS from_awaited
  FROM complete
  WHERE quality = best
),
awaited AS (
  SELECT *,
    CASE
      WHEN wait_kind = 'late broadcast' THEN root_ns
      WHEN wait_kind = 'early reduce' THEN CASE WHEN root_ns IS NOT NULL THEN others_ns END
      ELSE last_ns
    END AS awaited_ns,
    wait_kind <> 'collective' AND quality <> 2 AND from_last > 1 AND begin_ns < last_ns AND end_ns >= last_ns AS held
  FROM compared
),
waited AS (
  SELECT *,
    CASE
      WHEN held THEN last_ns - begin_ns -- the last one held up what it would have handed on
      WHEN from_awaited > 1 AND begin_ns < awaited_ns AND (wait_kind <> 'early reduce' OR is_root)
        THEN least(awaited_ns, greatest(end_ns, begin_ns)) - begin_ns
      ELSE 0
    END AS waited_ns,
    max(CASE WHEN held THEN 1 ELSE 0 END) OVER (PARTITION BY run, comm, function, ordinal) AS any_held
  FROM awaited
  WHERE awaited_ns IS NOT NULL
),
collectives AS (
  SELECT run, communicator, comm, function, ordinal, wait_kind, quality, count(*) AS compared, first_ns, last_ns,
    last_ns - first_ns AS skew_ns, greatest(max(end_ns) - last_ns, 0) AS transfer_ns,
    max(CASE WHEN any_held = 1 AND from_last = 1 OR any_held = 0 AND from_awaited = 1 THEN world_rank END) AS late_world_rank,
    max(CASE WHEN any_held = 1 AND from_last = 1 OR any_held = 0 AND from_awaited = 1 THEN rank_name END) AS late_rank_name,
    max(CASE WHEN any_held = 1 AND from_last = 1 OR any_held = 0 AND from_awaited = 1 THEN host END) AS late_host,
    CAST(sum(waited_ns) AS BIGINT) AS caused_ns,
    ordinal = 0 AND min(done_ns) = min(first_done_ns) AS begins
  FROM waited
  GROUP BY run, communicator, comm, function, ordinal, wait_kind, quality, first_ns, last_ns
)
SELECT run, communicator, comm, function, ordinal, wait_kind,
  CASE quality WHEN 4 THEN 'gpu' WHEN 3 THEN 'network' WHEN 2 THEN 'call' ELSE 'recorded' END AS timing_source,
  compared, first_ns, last_ns, skew_ns, transfer_ns, late_world_rank, late_rank_name, late_host, caused_ns,
  begins AND count(*) OVER (PARTITION BY run, comm) > 1 AS start_up
FROM collectives
ORDER BY run, first_ns, comm, function, ordinal
