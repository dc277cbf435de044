#!/bin/sh
# Writes .env beside this script: .env.example, with a value drawn for each name that has none. Never writes over one.
set -eu
umask 077
cd "$(dirname "$0")"
if [ -e .env ]; then
  echo "deploy/.env is there already: its keys open what the database holds." >&2
  exit 1
fi

hex() {
  od -An -tx1 -N"$1" /dev/urandom | tr -d ' \n'
}

while IFS= read -r line; do
  case $line in
    MILLRACE_API_KEY=) line="${line}mr_$(hex 24)" ;;
    MILLRACE_SEAL_KEY=) line="$line$(hex 32)" ;;
    POSTGRES_PASSWORD=) line="$line$(hex 24)" ;;
  esac
  printf '%s\n' "$line"
done <.env.example >.env.new
mv .env.new .env
echo "Wrote deploy/.env. Keep a copy of MILLRACE_SEAL_KEY apart from the database's backups."
