#!/usr/bin/env bash
# What a snapshot must have made: packaging/snapshot.sh DIST [full].
set -euo pipefail
dist=$1
need() { # PATTERN COUNT
  local n
  n=$(find "$dist" -name "$1" | wc -l)
  if [ "$n" -lt "$2" ]; then echo "$dist has $n of $1, want $2"; exit 1; fi
}
n=1
[ "${2:-}" = full ] && n=4
need '*.tar.gz' "$n"
need '*SHA256SUMS' 1
need 'a2agate.rb' 1
if [ "$(go env GOHOSTOS)" = linux ]; then
  need '*.deb' 1
  need '*.rpm' 1
fi
[ "${2:-}" = full ] && need '*.zip' 2
archive=$(find "$dist" -name '*.tar.gz' -print -quit)
inside=$(tar -tzf "$archive")
for file in a2agate LICENSE README.md man/a2agate.1 man/a2agate-serve.1 completions/a2agate.bash completions/_a2agate completions/a2agate.fish; do
  grep -qx "$file" <<<"$inside" || { echo "$archive has no $file"; exit 1; }
done
if command -v dpkg-deb >/dev/null; then packaging/deb.sh "$(find "$dist" -name '*.deb' -print -quit)"; fi
