#!/bin/sh
# The program of tools.toml: `tool.sh SECONDS FAILS`. Each line of the ledger is one write, as redial-testkit reads them: time in
# µs, what was done, call, attempt, idempotency key, execution.
set -eu
exec 3>>/ledger/calls
execution=$(cat /proc/sys/kernel/random/uuid)
attempt=${REDIAL_ATTEMPT##*.}

note() {
    printf '%s %s %s %s %s %s\n' "$(date +%s%6N)" "$1" "$REDIAL_CALL" "$attempt" "$REDIAL_IDEMPOTENCY_KEY" "$execution" >&3
}

note Started
if [ "$2" = yes ] && [ "$attempt" = 1 ]; then
    note Ended
    exit 75
fi
[ "$1" = 0 ] || sleep "$1"
note Effect
note Ended
printf '{"attempt": %s}\n' "$attempt"
