#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks at .github/workflows with actionlint, which Go's module proxy has. Where it cannot be had one line says so; with CI=true
# that is a failure. In the environment: GO.
set -euo pipefail
cd "$(dirname "$0")/.."
ACTIONLINT=github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

if ! said=$(CGO_ENABLED=0 "${GO:-go}" run "$ACTIONLINT" -version 2>&1); then
  echo "workflows: NOT CHECKED: actionlint cannot be had: $(tail -1 <<<"$said")"
  [ "${CI:-}" != true ]
  exit
fi
CGO_ENABLED=0 "${GO:-go}" run "$ACTIONLINT" -shellcheck= -pyflakes=
