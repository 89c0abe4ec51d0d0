#!/usr/bin/env bash
# Installs a built program on Debian, as root: install.sh PROGRAM [--unit]. Makes the user that it runs as and the folder of its
# state; --unit adds the systemd unit and, where there is none, a settings file. DESTDIR puts all of it below another root,
# and asks for no packages then.
set -euo pipefail
program="${1:?the program to install}"
unit="${2:-}"
here="$(cd "$(dirname "$0")" && pwd)"
root="${DESTDIR:-}"
# A number of its own, since an image must name its user by number for others to see that it is not root.
id=10001

if [ -z "$root" ] && [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then
  # The roots that endpoints behind https are checked against.
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends ca-certificates
  rm -rf /var/lib/apt/lists/*
fi
mkdir -p "$root/etc"
touch "$root/etc/passwd" "$root/etc/group"
grep -q '^toolrack:' "$root/etc/group" || echo "toolrack:x:$id:" >>"$root/etc/group"
grep -q '^toolrack:' "$root/etc/passwd" ||
  echo "toolrack:x:$id:$id:Toolrack:/var/lib/toolrack:/usr/sbin/nologin" >>"$root/etc/passwd"
install -D -m 0755 "$program" "$root/usr/local/bin/toolrack"
install -D -m 0755 "$here/health.sh" "$root/usr/local/bin/toolrack-health"
install -d -m 0700 -o "$id" -g "$id" "$root/var/lib/toolrack"
if [ "$unit" = --unit ]; then
  install -D -m 0644 "$here/toolrack.service" "$root/etc/systemd/system/toolrack.service"
  settings="$root/etc/toolrack/toolrack.toml"
  [ -e "$settings" ] || install -D -m 0640 -g "$id" "$here/toolrack.default.toml" "$settings"
fi
