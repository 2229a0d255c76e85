#!/bin/sh
# Before removal, not before an upgrade: deb says "remove", rpm counts 0.
set -e
case "$1" in
  remove | purge | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now a2agate.service || true
    fi
    ;;
esac
