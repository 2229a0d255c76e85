#!/usr/bin/env bash
# What a deb must hold: packaging/deb.sh FILE.
set -euo pipefail
inside=$(dpkg-deb --fsys-tarfile "$1" | tar -t)
for file in ./usr/bin/a2agate ./usr/lib/systemd/system/a2agate.service ./usr/lib/sysusers.d/a2agate.conf ./etc/a2agate/agents.json ./usr/share/man/man1/a2agate.1; do
  grep -qx "$file" <<<"$inside" || { echo "$1 has no $file"; exit 1; }
done
conffiles=$(dpkg-deb --ctrl-tarfile "$1" | tar -xO ./conffiles)
grep -qx /etc/a2agate/agents.json <<<"$conffiles" || { echo "$1 would overwrite the agents"; exit 1; }
scripts=$(dpkg-deb --ctrl-tarfile "$1" | tar -t)
for script in ./postinst ./prerm; do
  grep -qx "$script" <<<"$scripts" || { echo "$1 has no $script"; exit 1; }
done
