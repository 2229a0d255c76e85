#!/usr/bin/env bash
# Makes an MCPB bundle for one system: packaging/mcpb/build.sh GOOS GOARCH OUT
# [BINARY]. It builds the program unless it is given one. Needs
# packaging/node_modules: cd packaging && npm ci.
set -euo pipefail
goos=$1 goarch=$2 out=$3 binary=${4:-}
cd "$(dirname "$0")/../.."
dir=.tmp/mcpb-$goos-$goarch
name=a2agate
[ "$goos" = windows ] && name=a2agate.exe
rm -rf "$dir"
mkdir -p "$dir/server"
if [ -n "$binary" ]; then
  cp "$binary" "$dir/server/$name"
else
  CGO_ENABLED=0 GOOS=$goos GOARCH=$goarch go build -trimpath -ldflags '-s -w' -o "$dir/server/$name" ./cmd/a2agate
fi
platform=$goos
[ "$goos" = windows ] && platform=win32
sed -e "s/\"platforms\": \[.*\]/\"platforms\": [\"$platform\"]/" -e "s#\"entry_point\": .*#\"entry_point\": \"server/$name\",#" packaging/mcpb/manifest.json >"$dir/manifest.json"
cp LICENSE "$dir/"
packaging/node_modules/.bin/mcpb pack "$dir" "$out"
