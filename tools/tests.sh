# Sourced by ./dev: runs tests, and runs again, alone and once, those that failed.
#
# A thousand good tests must not be thrown away because of one that met a slow moment of the machine, and nothing may be
# hidden: what passes only alone is listed at the end, with both outputs kept. A test that is listed twice in a row has a
# defect: mend or delete it.

results=.redial/tests
# With more failures than this the machine was not just slow for a moment.
most_again=20

# tests_run ARGUMENTS: as cargo test.
tests_run() {
    local status=0 passed again
    mkdir -p "$results/alone"
    rm -f "$results"/alone/*.txt
    cargo test --workspace --locked --no-fail-fast "$@" 2>&1 | tee "$results/first.txt" || status=$?
    failures "$results/first.txt" >"$results/failed"
    passed=$(awk '/^test result: /{n += $4} END {print n + 0}' "$results/first.txt")
    if [ "$status" != 0 ]; then
        run_again || { printf '\n%s passed, %s failed\n' "$passed" "$(wc -l <"$results/failed")"; return 1; }
    else
        rm -f "$results/passed_only_alone"
    fi
    again=$(wc -l <"$results/failed")
    printf '\n%s passed, 0 failed\n' "$((passed + again))"
}

# failures FILE: a line "TARGET NAME" for each failed test of an output of cargo test, in which TARGET is cargo's flag; a
# line "TARGET -" for an executable that ended without a result.
failures() {
    awk '
        function executable_ended() { if (target != "" && !has_result) print target, "-" }
        /^ +Running / {
            executable_ended(); has_result = 0; listing = 0
            name = $NF; sub(/^.*\//, "", name); sub(/-[0-9a-f]+\)$/, "", name)
            if ($2 != "unittests") target = "--test=" name
            else target = ($3 ~ /lib\.rs$/) ? "--lib" : "--bins"
        }
        /^ +Doc-tests / { executable_ended(); target = "--doc"; has_result = 0; listing = 0 }
        /^failures:$/ { listing = 1; next }
        /^test result: / { has_result = 1; listing = 0 }
        listing && /^    [^ ]+( \(line [0-9]+\))?$/ { print target, $1 }
        /^error: could not compile/ { print "build", "-" }
        END { executable_ended() }
    ' "$1" | sort -u
}

# Runs each failed test again, alone. False if one fails again, or if the failures cannot be run again.
run_again() {
    local target name file result=0 before
    if [ ! -s "$results/failed" ] || grep -q ' -$' "$results/failed"; then
        say "an executable did not come to an end, so nothing is run again:"
        cat "$results/failed" >&2
        return 1
    fi
    if [ "$(wc -l <"$results/failed")" -gt "$most_again" ]; then
        say "more than $most_again tests failed, so none is run again"
        return 1
    fi
    before=$(cat "$results/passed_only_alone" 2>/dev/null || true)
    : >"$results/passed_only_alone"
    while read -r target name; do
        file=$results/alone/${name//::/.}.txt
        say "again, alone: $name"
        if cargo test --workspace --locked "$target" -- --exact "$name" >"$file" 2>&1 </dev/null; then
            echo "$target $name" >>"$results/passed_only_alone"
        else
            result=1
            say "FAILED AGAIN: $name"
            tail -n 40 "$file" >&2
        fi
    done <"$results/failed"
    [ -s "$results/passed_only_alone" ] || return "$result"
    printf '\npassed only alone (the first output: %s)\n' "$results/first.txt"
    while read -r target name; do
        printf '  %-12s %s%s\n' "$target" "$name" \
            "$(grep -qxF -- "$target $name" <<<"$before" && echo '   TWICE IN A ROW: mend or delete it')"
        printf '               alone: %s\n' "$results/alone/${name//::/.}.txt"
    done <"$results/passed_only_alone"
    return "$result"
}

# step NAME COMMAND…: runs it in a shell of its own, and notes how long it took; `steps` prints that. Not to be used in a
# condition: there a shell goes on after errors.
step() {
    local name=$1 began=$SECONDS status flags=$-
    shift
    say "---- $name"
    set +e
    (set -e; "$@")
    status=$?
    printf '%-24s %5d s  %s\n' "$name" $((SECONDS - began)) "$([ $status = 0 ] && echo ok || echo FAILED)" >>"$results/steps"
    case $flags in *e*) set -e ;; esac
    return $status
}

steps_begin() { mkdir -p "$results"; : >"$results/steps"; }
steps() { printf '\n'; cat "$results/steps"; }
