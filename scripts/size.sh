#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How large the project is. Called by `make size`: lines of each Go package (code, tests, and which share of them are comments), the ten longest
# functions, packages of more than LARGE (4000) lines, and how many names packages export. Generated files (zz_*) and made-up packages
# (testdata) are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${GO:-go}" run ./tests/size -large "${LARGE:-4000}"
