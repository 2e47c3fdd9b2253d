-- SPDX-License-Identifier: Apache-2.0
-- How fast were operations of each kind and size?
-- Tables: operations. Units: ns, GB/s (10^9 bytes), size in bytes as nccl-tests counts. One row for each kind, as in the report: operations
-- is how many there were, timed how many of them the times are of: without the first launch of a communicator (start_up) and those whose
-- members' times are of different sources (mixed). An operation's time is the mean of its members', bandwidths are of the median (nearest
-- rank); nobody_late: from the last arrival to the end. 0: not known.
WITH parts AS (
  SELECT *,
    CASE WHEN peer IS NULL THEN -1 ELSE rank END AS own_rank, coalesce(peer, -1) AS other_rank, -- each end of a message is an operation
    CASE
      WHEN timing_source = 'gpu' THEN 5
      WHEN timing_source = 'network' THEN 4
      WHEN timing_source = 'call' THEN 3
      WHEN timing_source = 'enqueue' THEN 2
      WHEN timing_source = 'duration' THEN 1
      ELSE 0
    END AS quality,
    max(timing_source) OVER (PARTITION BY run) IS NULL AS unstated
  FROM operations
  WHERE peer IS NOT NULL OR alike
),
numbered AS (
  SELECT *,
    row_number() OVER (PARTITION BY run, comm, function, ordinal, own_rank, other_rank ORDER BY rank) AS nth_member,
    count(*) OVER (PARTITION BY run, comm, function, ordinal, own_rank, other_rank) AS came
  FROM parts
),
instances AS (
  SELECT run, communicator, comm, ranks, function, ordinal, own_rank, other_rank,
    max(datatype) AS datatype, max(size_bytes) AS size_bytes, max(CASE WHEN nth_member = 1 THEN root END) AS root,
    bool_or(grouped) AS is_grouped, CASE WHEN min(launched_equal) = max(launched_equal) THEN min(launched_equal) ELSE 0 END AS equal,
    bool_or(device) AS is_device, bool_or(graph) AS is_replayed, bool_or(start_up) AS starts_up,
    min(quality) AS weakest, min(quality) <> max(quality) AS is_mixed, bool_or(unstated) AS is_unstated,
    CASE
      WHEN max(root) IS NOT NULL THEN max(CASE WHEN rank = root THEN CASE WHEN in_place THEN 1 ELSE 0 END + CASE WHEN in_place IS NULL THEN -1 ELSE 0 END END)
      WHEN min(CASE WHEN in_place THEN 1 ELSE 0 END + CASE WHEN in_place IS NULL THEN 1 ELSE 0 END) = 0 THEN 0
      WHEN max(CASE WHEN in_place IS NULL THEN 1 ELSE 0 END) = 1 THEN -1
      ELSE 1
    END AS placed,
    max(CASE WHEN nth_member = 1 THEN algorithm END) AS algorithm, max(CASE WHEN nth_member = 1 THEN protocol END) AS protocol,
    max(CASE WHEN nth_member = 1 THEN variant END) AS variant, max(bus_factor) AS bus_factor, count(*) AS calls,
    CAST(sum(duration_ns) AS DOUBLE) / count(*) AS mean_ns, greatest(max(end_ns) - max(begin_ns), 0) AS after_last_ns
  FROM numbered
  WHERE peer IS NOT NULL OR came = members
  GROUP BY run, communicator, comm, ranks, function, ordinal, own_rank, other_rank
),
times AS (
  SELECT *,
    mean_ns / greatest(equal, 1) AS time_ns,
    CASE WHEN calls > 1 AND NOT is_mixed AND (is_unstated OR weakest >= 3) THEN CAST(after_last_ns AS DOUBLE) / greatest(equal, 1) END AS transfer_ns,
    NOT starts_up AND NOT is_mixed AS counts,
    concat_ws('/', CAST(comm AS STRING), function, coalesce(datatype, '-'), CAST(size_bytes AS STRING), CAST(coalesce(root, -1) AS STRING),
      CAST(is_grouped AS STRING), CAST(equal AS STRING), CAST(weakest AS STRING), CAST(is_device AS STRING), CAST(is_replayed AS STRING),
      CAST(placed AS STRING), coalesce(algorithm, '-'), coalesce(protocol, '-'), coalesce(variant, '-')) AS kind
  FROM instances
),
ordered AS (
  SELECT *,
    row_number() OVER (PARTITION BY run, kind, counts ORDER BY time_ns) AS nth,
    count(*) OVER (PARTITION BY run, kind, counts) AS n,
    row_number() OVER (PARTITION BY run, kind, counts, transfer_ns IS NULL ORDER BY transfer_ns) AS nth_transfer,
    count(*) OVER (PARTITION BY run, kind, counts, transfer_ns IS NULL) AS n_transfer
  FROM times
),
kinds AS (
  SELECT run, kind, communicator, comm, ranks, function, datatype, size_bytes, root, is_grouped, equal, weakest, is_device, is_replayed, placed,
    algorithm, protocol, variant, max(bus_factor) AS bus_factor, CAST(sum(calls) AS BIGINT) AS calls, count(*) AS operations,
    CAST(sum(CASE WHEN starts_up THEN 1 ELSE 0 END) AS BIGINT) AS start_up,
    CAST(sum(CASE WHEN is_mixed AND NOT starts_up THEN 1 ELSE 0 END) AS BIGINT) AS mixed,
    CAST(sum(CASE WHEN counts THEN 1 ELSE 0 END) AS BIGINT) AS timed,
    sum(time_ns) AS total_ns, avg(CASE WHEN counts THEN time_ns END) AS avg_ns,
    min(CASE WHEN counts THEN time_ns END) AS min_ns, max(CASE WHEN counts THEN time_ns END) AS max_ns,
    max(CASE WHEN counts AND 2 * nth >= n AND 2 * (nth - 1) < n THEN time_ns END) AS p50_ns,
    max(CASE WHEN counts AND 100 * nth >= 99 * n AND 100 * (nth - 1) < 99 * n THEN time_ns END) AS p99_ns,
    CAST(sum(CASE WHEN counts AND transfer_ns IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT) AS transfer_timed,
    max(CASE WHEN counts AND transfer_ns IS NOT NULL AND 2 * nth_transfer >= n_transfer AND 2 * (nth_transfer - 1) < n_transfer THEN transfer_ns END)
      AS transfer_p50_ns
  FROM ordered
  GROUP BY run, kind, communicator, comm, ranks, function, datatype, size_bytes, root, is_grouped, equal, weakest, is_device, is_replayed, placed,
    algorithm, protocol, variant
),
rates AS (
  SELECT *,
    CASE WHEN weakest <> 2 AND (NOT is_grouped OR equal > 0) AND p50_ns > 0
      THEN CAST(timed * size_bytes AS DOUBLE) / (timed * p50_ns) ELSE 0e0 END AS algbw_gbs,
    CASE WHEN weakest <> 2 AND (NOT is_grouped OR equal > 0) AND transfer_p50_ns > 0
      THEN CAST(transfer_timed * size_bytes AS DOUBLE) / (transfer_timed * transfer_p50_ns) ELSE 0e0 END AS algbw_nobody_late_gbs
  FROM kinds
)
SELECT run, communicator, comm, ranks, function, root, datatype, size_bytes, is_grouped AS grouped, equal AS launched_equal, is_device AS device,
  CASE placed WHEN 1 THEN true WHEN 0 THEN false END AS in_place, is_replayed AS replayed,
  CASE weakest WHEN 5 THEN 'gpu' WHEN 4 THEN 'network' WHEN 3 THEN 'call' WHEN 2 THEN 'enqueue' WHEN 1 THEN 'duration' ELSE '' END AS timing_source,
  algorithm, protocol, variant, calls, operations, start_up, mixed, timed,
  total_ns, coalesce(avg_ns, 0e0) AS avg_ns, coalesce(min_ns, 0e0) AS min_ns, coalesce(p50_ns, 0e0) AS p50_ns, coalesce(p99_ns, 0e0) AS p99_ns,
  coalesce(max_ns, 0e0) AS max_ns, algbw_gbs, algbw_gbs * bus_factor AS busbw_gbs,
  transfer_timed, transfer_p50_ns, algbw_nobody_late_gbs, algbw_nobody_late_gbs * bus_factor AS busbw_nobody_late_gbs
FROM rates
ORDER BY run, comm, function, size_bytes, kind
