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
if command -v dpkg-deb >/dev/null; then
  deb=$(find "$dist" -name '*.deb' -print -quit)
  inside=$(dpkg-deb --fsys-tarfile "$deb" | tar -t)
  for file in ./usr/bin/a2agate ./usr/lib/systemd/system/a2agate.service ./usr/lib/sysusers.d/a2agate.conf ./etc/a2agate/agents.json ./usr/share/man/man1/a2agate.1; do
    grep -qx "$file" <<<"$inside" || { echo "$deb has no $file"; exit 1; }
  done
  conffiles=$(dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./conffiles)
  grep -qx /etc/a2agate/agents.json <<<"$conffiles" || { echo "$deb would overwrite the agents"; exit 1; }
fi
