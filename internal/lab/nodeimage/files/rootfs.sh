#!/usr/bin/env bash
# usage: rootfs.sh FOLDER SUITE PACKAGE...
# Makes a Debian root file system for a node in FOLDER, which must not exist, from the
# mirror that apt is configured for. Needs root and debootstrap.
set -euo pipefail

root=$1 suite=$2
shift 2
packages=$(IFS=, && echo "$*")

# apt-get knows the mirror, and what of it is Debian's own main archive. The security
# archive is no mirror: it holds updates only.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
  awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ {print $3; exit}')
[ -n "$mirror" ] || {
  echo "apt names no Debian mirror: run 'apt-get update', and see that /etc/apt has Debian's main archive" >&2
  exit 1
}

debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror"

# What boots a real machine only keeps a container from booting, or slows it.
units=$root/lib/systemd/system
rm -f "$units"/sysinit.target.wants/systemd-tmpfiles-setup.service \
  "$units"/multi-user.target.wants/* \
  "$units"/local-fs.target.wants/* \
  "$units"/sockets.target.wants/*udev* \
  "$units"/sockets.target.wants/*initctl* \
  "$units"/basic.target.wants/* \
  "$root"/etc/systemd/system/*.wants/*

# The kernel's messages are the host's.
echo 'ReadKMsg=no' >>"$root/etc/systemd/journald.conf"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
