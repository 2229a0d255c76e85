#!/usr/bin/env bash
# Checks what a2agate is packaged with, as far as that goes without publishing
# and without a Docker engine. What a check needs and the machine lacks, it
# skips and says so.
#
#   packaging/check.sh        a few seconds to three minutes: reads
#                             .goreleaser.yaml with goreleaser's own parts and
#                             makes the deb and the rpm of this machine
#   packaging/check.sh full   goreleaser itself, built where it must be (13
#                             minutes on two cores), and every target
#
# A2AGATE_CHECK_SECONDS is how long the whole may take (170; full: 3600): what
# would take longer is cut off and counts as skipped. The last line names what
# was checked and what was skipped.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
mkdir -p .tmp
full=${1:-}
limit=170
[ "$full" = full ] && limit=3600
limit=${A2AGATE_CHECK_SECONDS:-$limit}
passed=() failed=() skipped=()

ok() { passed+=("$1"); echo "ok   $1"; }
bad() { failed+=("$1"); echo "FAIL $1"; }
skip() { skipped+=("$1 ($2)"); echo "skip $1: $2"; }
check() { # NAME COMMAND…: its output is shown when it fails
  local name=$1 out; shift
  if out=$("$@" 2>&1); then ok "$name"; else bad "$name"; printf '%s\n' "$out" | tail -40; fi
}

within() { # COMMAND…: in what is left of the time; 124 when it was not enough
  local left=$((limit - SECONDS))
  [ "$left" -gt 0 ] || return 124
  timeout "$left" "$@"
}

node_tools() { # mcpb and dockerfile-utils, pinned in packaging/package-lock.json
  [ -x packaging/node_modules/.bin/mcpb ] && cmp -s packaging/package-lock.json packaging/node_modules/.a2agate-lock && return 0
  command -v npm >/dev/null || return 127
  (cd packaging && within npm ci --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.a2agate-lock) >.tmp/npm.log 2>&1
}

# The scripts and the program in the packages.
syntax() { for script in packaging/*.sh packaging/*/*.sh; do "$(sed -n '1s/.*[/ ]//p' "$script")" -n "$script" || return; done; }
check "syntax of the scripts" syntax
if command -v shellcheck >/dev/null; then check shellcheck shellcheck packaging/*.sh packaging/*/*.sh; else skip shellcheck "not installed"; fi
make -s build >/dev/null || bad "make build"
SECONDS=0 # the program is what is checked; its build is not part of the time

# systemd: the unit as if the program were installed.
if command -v systemd-analyze >/dev/null; then
  mkdir -p .tmp/systemd
  sed "s#/usr/bin/a2agate#$PWD/bin/a2agate#" packaging/systemd/a2agate.service >.tmp/systemd/a2agate.service
  check "systemd-analyze verify" systemd-analyze verify --man=no .tmp/systemd/a2agate.service
  check "systemd-analyze security, at most 2.0" systemd-analyze security --offline=yes --threshold=20 .tmp/systemd/a2agate.service
else
  skip "systemd-analyze" "not installed"
fi
if command -v plutil >/dev/null; then check plutil plutil -lint packaging/launchd/*.plist; else skip plutil "not installed, go test reads the file as XML"; fi

# The Dockerfile and the bundle.
node_tools
node=$?
if [ $node -eq 0 ]; then
  check "dockerfile-utils lint" packaging/node_modules/.bin/dockerfile-utils lint packaging/docker/Dockerfile
  check "mcpb validate" packaging/node_modules/.bin/mcpb validate packaging/mcpb/manifest.json
  check "mcpb pack" within packaging/mcpb/build.sh "$(go env GOOS)" "$(go env GOARCH)" .tmp/a2agate.mcpb bin/a2agate
else
  case $node in
    127) why="npm is not installed" ;;
    124) why="not installed in $limit s" ;;
    *) why="npm ci: $(grep -m1 -o 'npm error.*' .tmp/npm.log)" ;;
  esac
  skip "dockerfile-utils lint, mcpb validate and pack" "$why"
fi
if command -v hadolint >/dev/null; then check hadolint hadolint packaging/docker/Dockerfile; else skip hadolint "not installed"; fi

# What .goreleaser.yaml says, pinned in packaging/tools.mod.
packages() {
  local arch
  arch=$(go env GOHOSTARCH)
  rm -rf .tmp/packages
  mkdir -p .tmp/packages
  bin/a2agate gen completions .tmp/completions || return 1
  if [ ! -x .tmp/release ] || [ packaging/release.go -nt .tmp/release ] || [ packaging/tools.mod -nt .tmp/release ]; then
    within go build -modfile=packaging/tools.mod -o .tmp/release packaging/release.go || return
  fi
  .tmp/release bin/a2agate "$arch" .tmp/packages
}
out=$(packages 2>&1)
case $? in
  0) ok ".goreleaser.yaml, deb and rpm of it"
    if command -v dpkg-deb >/dev/null; then check "what is in the deb" packaging/deb.sh .tmp/packages/*.deb; else skip "what is in the deb" "no dpkg-deb"; fi ;;
  124) skip "deb and rpm" "not built in $limit s, the next time it goes on from the build cache" ;;
  *) if grep -qE 'dial tcp|connection refused|no such host|i/o timeout|TLS handshake|: (403|404|410|429|50[0-9]) ' <<<"$out"; then skip "deb and rpm" "module proxy not reached"; else bad "deb and rpm"; printf '%s\n' "$out" | tail -20; fi ;;
esac

# goreleaser itself.
goreleaser=$(command -v goreleaser || true)
if [ -z "$goreleaser" ] && [ "$full" = full ]; then
  goreleaser=.tmp/goreleaser
  [ -x $goreleaser ] || within go build -modfile=packaging/tools.mod -o $goreleaser github.com/goreleaser/goreleaser/v2 2>.tmp/goreleaser.log
fi
if [ -z "$goreleaser" ]; then
  skip "goreleaser check and snapshot" "not installed, check.sh full builds it"
elif [ -x "$goreleaser" ]; then
  check "goreleaser check" "$goreleaser" check
  config=.goreleaser.yaml
  if [ "$full" != full ]; then
    config=.tmp/goreleaser.yaml
    sed -E "s/^( *goos:) \[.*/\1 [$(go env GOHOSTOS)]/; s/^( *goarch:) \[.*/\1 [$(go env GOHOSTARCH)]/" .goreleaser.yaml >$config
  fi
  within "$goreleaser" release --snapshot --clean --config $config >.tmp/snapshot.log 2>&1
  case $? in
    0) check "goreleaser snapshot has its files" packaging/snapshot.sh .tmp/dist "$full" ;;
    124) skip "goreleaser snapshot" "not done in $limit s, the next time it goes on from the build cache" ;;
    *) bad "goreleaser snapshot"; tail -30 .tmp/snapshot.log ;;
  esac
else
  skip goreleaser "not built in $limit s ($(tail -1 .tmp/goreleaser.log)); the next time it goes on from the build cache"
fi

list() { # A B…: "A, B"
  local text
  printf -v text '%s, ' "$@"
  echo "${text%, }"
}
line="packaging: checked $(list "${passed[@]}")"
[ ${#skipped[@]} -gt 0 ] && line+=" | skipped $(list "${skipped[@]}")"
[ ${#failed[@]} -gt 0 ] && line+=" | FAILED $(list "${failed[@]}")"
echo "$line"
[ ${#failed[@]} -eq 0 ]
