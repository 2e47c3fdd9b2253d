#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
rank=${TORCHELASTIC_RUN_ID:+$RANK}
rank=${rank:-${SLURM_PROCID:-${PMIX_RANK:-${PMI_RANK:-$RANK}}}}
folder=$(dirname "$(realpath "$0")")
host=$folder/replay-host
if [ -n "$TRAIN_STOP" ]; then
  met=$folder/met.$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURM_RESTART_COUNT
  truncate -s 65536 "$met"
  [ "$TRAIN_STOP" = never ] || set -- --stop-at "$TRAIN_STOP"
  exec "$host" --clock live --together "$met" "$@" "$folder/p$rank.program" >/dev/null
fi
export NCCL_OTF2_CLOCK=host
exec "$host" --clock recorded "$folder/p$rank.program" >/dev/null
