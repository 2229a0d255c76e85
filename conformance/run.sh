#!/usr/bin/env bash
# Real clients, real agents and the official MCP suite against the built
# binary. Installs the pinned Node 22 and programs from npm by itself; needs Go
# and npm. conformance/run.sh [direct|interop|suite]: one part alone, without a
# report; direct is the client alone against the SDKs' agents.
# REPEAT=20 repeats what depends on the order of things as often.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .tmp
if ! command -v npm >/dev/null; then
  echo "conformance: npm is not installed; install Node.js (any version with npm), it brings the pinned Node 22" >&2
  exit 1
fi
if [ ! -x conformance/node_modules/.bin/node ] || ! cmp -s conformance/package-lock.json conformance/node_modules/.a2agate-lock; then
  # Not "npm ci": one optional dependency of the inspector is not in the registry, so no lock file satisfies it.
  (cd conformance && npm install --no-save --loglevel=error && cp package-lock.json node_modules/.a2agate-lock)
fi
[ -x bin/a2agate ] || make build
go build -o .tmp/suite-agent ./conformance/agent
go build -o .tmp/direct ./conformance/direct
(cd conformance/gopeers && go build -o ../../.tmp/ ./agent ./client ./strict)
node=$PWD/conformance/node_modules/.bin/node
"$node" --version
rc=0
own() { # the tests of what judges here
  (cd conformance/gopeers && go test ./...) || rc=1
  "$node" --test --test-reporter=dot conformance/*.test.mjs || rc=1
}
direct() { .tmp/direct "js=$node conformance/jsagent/agent.mjs" "go=.tmp/agent" || rc=1; }
case "${1:-all}" in
  direct) direct ;;
  interop) own; "$node" conformance/interop.mjs || rc=1 ;;
  suite) own; "$node" conformance/suite.mjs || rc=1 ;;
  all)
    own
    direct
    "$node" conformance/interop.mjs || rc=1
    "$node" conformance/suite.mjs || rc=1
    [ $rc -ne 0 ] || "$node" conformance/report.mjs || rc=1 ;;
  *) echo "conformance: unknown part \"$1\": direct, interop or suite" >&2; exit 2 ;;
esac
exit $rc
