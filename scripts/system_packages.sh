#!/usr/bin/env bash
# System packages some tests want. Without root or apt it says so and goes on: those tests then skip with a reason.
set -u

wanted=()
have() { command -v "$1" >/dev/null 2>&1; }
have swipl || wanted+=(swi-prolog-nox)      # the real PhantomWiki generator
have chromium || wanted+=(chromium)         # the report and the viewer in a real browser
have strace || wanted+=(strace)             # no network at run time

if [ ${#wanted[@]} -eq 0 ]; then
  echo "system packages: all there"
elif [ "$(id -u)" -ne 0 ] || ! have apt-get; then
  echo "system packages: cannot install ${wanted[*]} (needs root and apt); tests that need them will skip"
else
  echo "system packages: installing ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  if apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null 2>&1; then
    echo "system packages: done"
  else
    echo "system packages: apt could not install ${wanted[*]}; tests that need them will skip"
  fi
fi
