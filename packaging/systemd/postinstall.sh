#!/bin/sh
# After install and upgrade of the deb and rpm packages. The service is not
# started: its file has no agents yet.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers a2agate.conf || true
fi
if getent group a2agate >/dev/null 2>&1; then
  chgrp a2agate /etc/a2agate/agents.json || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  systemctl try-restart a2agate.service || true
fi
