#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For enroot and pyxis, in the folder of the packages: recipes/enroot.sh nvcr.io#nvidia/pytorch:25.09-py3 train-recorded.sqsh
# Then: srun --container-image=./train-recorded.sqsh nccl-otf2 run --dir exp -- python train.py
set -eu
enroot import --output base.sqsh "docker://$1"
enroot create --name nccl-otf2-build base.sqsh
enroot start --root --rw --mount "$PWD:/packages" nccl-otf2-build dpkg -i /packages/nccl-otf2_@VERSION@_amd64.deb
enroot export --output "$2" nccl-otf2-build
enroot remove --force nccl-otf2-build
rm base.sqsh
