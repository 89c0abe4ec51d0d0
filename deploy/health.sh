#!/usr/bin/env bash
# Whether the service on this machine runs, for a container without an HTTP client: toolrack-health [PORT].
set -euo pipefail
exec 3<>"/dev/tcp/127.0.0.1/${1:-8480}"
printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
IFS= read -r -t 5 status <&3
[[ "$status" == HTTP/1.?' 200 '* ]]
