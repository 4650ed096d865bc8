#!/bin/sh
# Serve the harbour example at 0.0.0.0:8765: imported once, with a curator's token that is printed once.
set -eu
cd "${1:-/data}"
if [ ! -e harbour ]; then
  kbgym examples copy harbour
  (cd harbour && kbgym init notes --questions questions.csv && kbgym store copy .kbgym/world store)
fi
cd harbour
[ -e store/tokens.jsonl ] || kbgym serve store --new-token demo --role curator
exec kbgym serve store --http "${2:-0.0.0.0:8765}"
