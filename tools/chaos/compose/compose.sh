# shellcheck shell=bash
# `./dev compose`, read by `dev`, whose functions it uses: docker-compose.yml on an engine, broken here and checked by redial-chaos.
#
# An engine that answers is used as it is: the images and everything else that is made there have names of their own and
# are removed. Otherwise one is started in namespaces of its own (network, mounts, processes), so that all that it starts
# and changes ends with it, however it ends.

files=tools/chaos/compose
state=$PWD/.redial/compose
project=redial-check
cgroup=redial-check
# Debian's release of the images.
release=bookworm

compose() {
    local inside
    case " $* " in *" --help "* | *" -h "*) compose_help; return ;; esac
    has_cargo
    type -P cc >/dev/null || debian_cc
    mkdir -p "$state"
    exec 9>"$state/lock"
    flock --nonblock 9 || fail "./dev compose runs already in this folder"
    if engine_answers; then
        say "using the Docker engine that runs: $(docker version --format '{{.Server.Version}}')"
    else
        install_engine
        export REDIAL_OWN_ENGINE=1
        make_images
    fi
    say "building Redial"
    cargo build --locked --release -p redial -p redial-chaos 9>&-
    trap 'end_inside $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ -n "${REDIAL_OWN_ENGINE:-}" ]; then
        unshare --net --mount --pid --fork --kill-child --mount-proc ./dev compose-inside "$@" &
    else
        ./dev compose-inside "$@" &
    fi
    inside=$!
    wait "$inside"
}

compose_help() {
    cat <<'TEXT'
./dev compose [--seed N] [--calls N] [--faults N]

Runs docker-compose.yml with 4 workers and 2 dispatchers, sends it 3,000 calls and 30 tasks, and meanwhile kills, restarts,
pauses and disconnects its containers. Then it checks the invariants, and removes everything. Exit code 0 if all hold.

It uses the Docker engine that answers, with the public images. If none answers, it installs Debian's docker.io, docker-compose
and debootstrap, starts an engine of its own (as root), and makes images of the same programs from Debian's packages.
TEXT
}

# Ends what runs in the namespaces, in order if it can.
end_inside() {
    trap - EXIT INT TERM
    local first
    if [ -n "${inside:-}" ] && kill -0 "$inside" 2>/dev/null; then
        # unshare itself waits for its child.
        first=$(ps -o pid= --ppid "$inside" | tr -d ' ' | head -n 1)
        if [ -n "${REDIAL_OWN_ENGINE:-}" ]; then kill -TERM "$first" 2>/dev/null; else kill -TERM "$inside"; fi
        timeout 180 tail --pid="$inside" -f /dev/null || kill -KILL "$inside"
        wait "$inside" || true
    fi
    rm -rf "$state/data" "$state/run" "$state/ledger" "$state/env" "$state/program"
    # Of an engine that was killed.
    if [ -n "${REDIAL_OWN_ENGINE:-}" ]; then
        find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
    fi
    exit "$1"
}

engine_answers() { type -P docker >/dev/null && timeout 20 docker info >/dev/null 2>&1; }

install_engine() {
    local missing=() program
    is_root || fail "no Docker engine answers. Start one, or run this as root: it then starts one of its own"
    for program in dockerd:docker.io docker-compose:docker-compose debootstrap:debootstrap iptables:iptables ip:iproute2; do
        type -P "${program%%:*}" >/dev/null || missing+=("${program##*:}")
    done
    if [ ${#missing[@]} != 0 ]; then
        can_install || fail "no Docker engine answers, and these are missing: ${missing[*]}"
        say "installing as packages of this system: ${missing[*]}"
        apt_with_fresh_lists install -y --no-install-recommends "${missing[@]}" >/dev/null
    fi
}

# ---- Images of Debian's packages -----------------------------------------------------------------------------------

# Two file systems, kept in .redial for the next time: what Redial's image is built on, and one with the servers.
make_images() {
    local mirror
    mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' 2>/dev/null |
        awk -v release=$release '$1 == "Packages" && $2 == release {print $3; exit}')
    [ -n "$mirror" ] || fail "the images are made of Debian $release, and this machine's apt has no packages of it"
    tree base "$mirror" ca-certificates
    tree servers "$mirror" postgresql-15,nats-server,wget
}

# tree NAME MIRROR PACKAGES
tree() {
    local folder=$state/$1 archive=$state/$1.tar
    [ ! -s "$archive" ] || return 0
    say "making a file system with debootstrap: $3"
    rm -rf "$folder"
    debootstrap --variant=minbase --include="$3" $release "$folder" "$2" >"$folder.log" 2>&1 ||
        fail "debootstrap failed; the end of $folder.log: $(tail -n 3 "$folder.log")"
    # Containers have no network: apt must not look for one. A database of the package's own is not wanted.
    : >"$folder/etc/apt/sources.list"
    rm -rf "$folder"/var/lib/apt/lists/* "$folder"/var/cache/apt/* "$folder"/usr/share/{doc,man,locale} \
        "$folder"/var/lib/postgresql/* "$folder"/etc/postgresql/*
    tar --create --file "$archive.part" --directory "$folder" --exclude ./dev --exclude ./proc --exclude ./sys .
    mv "$archive.part" "$archive"
    rm -rf "$folder" "$folder.log"
}

# The name of an image in docker-compose.yml.
public() { sed -n "s/^ *image: \($1:.*\)$/\1/p" docker-compose.yml; }

# The public images if an engine of this machine can have them. Images of Debian's packages have names of their own, because a
# digest in docker-compose.yml is that of the public one.
name_images() {
    export REDIAL_CHECK_POSTGRES_IMAGE REDIAL_CHECK_NATS_IMAGE REDIAL_CHECK_BASE
    export REDIAL_CHECK_IMAGE=$project/redial REDIAL_CHECK_PROGRAM=$project/program
    REDIAL_CHECK_POSTGRES_IMAGE=$(public postgres)
    REDIAL_CHECK_NATS_IMAGE=$(public nats)
    REDIAL_CHECK_BASE=$(sed -n 's/^ARG BASE=//p' deploy/Dockerfile)
    if [ -n "${REDIAL_OWN_ENGINE:-}" ] || ! pull "$REDIAL_CHECK_POSTGRES_IMAGE" "$REDIAL_CHECK_NATS_IMAGE" "$REDIAL_CHECK_BASE"; then
        is_root || fail "the public images cannot be had; as root this makes images of the same programs from Debian's packages"
        say "the public images cannot be had: images of Debian's packages stand in for them, under names of their own"
        type -P debootstrap >/dev/null || apt_with_fresh_lists install -y --no-install-recommends debootstrap >/dev/null
        make_images
        REDIAL_CHECK_POSTGRES_IMAGE=$project/postgres REDIAL_CHECK_NATS_IMAGE=$project/nats REDIAL_CHECK_BASE=$project/base
        stand_in
    fi
    say "images: $REDIAL_CHECK_POSTGRES_IMAGE, $REDIAL_CHECK_NATS_IMAGE, and ours on $REDIAL_CHECK_BASE"
}

pull() {
    local image
    for image in "$@"; do
        docker image inspect "$image" >/dev/null 2>&1 || timeout 600 docker pull --quiet "$image" >/dev/null 2>&1 || return
    done
}

stand_in() {
    say "importing images of Debian's packages"
    docker import "$state/base.tar" "$REDIAL_CHECK_BASE" >/dev/null
    docker import --change "ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        "$state/servers.tar" $project/servers >/dev/null
    build $files/postgres.Dockerfile "$REDIAL_CHECK_POSTGRES_IMAGE" --build-arg SERVERS=$project/servers $files
    build $files/nats.Dockerfile "$REDIAL_CHECK_NATS_IMAGE" --build-arg SERVERS=$project/servers $files
}

build() { docker build --quiet --file "$1" --tag "$2" "${@:3}" >/dev/null; }

# An image that has nothing but the binary, for deploy/Dockerfile. A binary of a newer Debian would not run in the image: then the
# Dockerfile compiles it.
program() {
    if ! grep -qx "VERSION_CODENAME=$release" /etc/os-release; then
        say "this machine is not Debian $release: the program is compiled in a container"
        REDIAL_CHECK_PROGRAM=build
        return
    fi
    mkdir -p "$state/program"
    deploy/strip.sh "$built/release/redial" "$state/program"
    tar --create --directory "$state/program" redial | docker import - $REDIAL_CHECK_PROGRAM >/dev/null
}

# ---- An engine of its own ------------------------------------------------------------------------------------------

# In namespaces of its own. Another containerd must not be found: it would mount and start things outside of them.
start_engine() {
    ip link set lo up
    [ ! -d /run/containerd ] || mount -t tmpfs none /run/containerd
    # The names of sockets are short.
    mkdir -p "$state/data"
    mount -t tmpfs none /run/lock
    export DOCKER_HOST=unix:///run/lock/docker.sock DOCKER_CONFIG=/run/lock/config
    # Debian's program, which builds without plug-ins.
    export PATH=/usr/sbin:/usr/bin:$PATH
    engine || engine --iptables=false --ip-masq=false || fail "dockerd did not start; its log: $(tail -n 5 "$state/dockerd.log")"
    say "started $(dockerd --version) with $(docker info --format 'storage driver {{.Driver}}, cgroups version {{.CgroupVersion}}')"
}

# engine FLAG…: its process in $dockerd. In a session of its own, so that Ctrl-C leaves it to `take_down`.
engine() {
    setsid dockerd --host "$DOCKER_HOST" --data-root "$state/data" --exec-root /run/lock/exec --pidfile /run/lock/docker.pid \
        --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$cgroup" "$@" >"$state/dockerd.log" 2>&1 9>&- &
    dockerd=$!
    until engine_answers; do
        kill -0 "$dockerd" 2>/dev/null || return
        sleep 0.5
    done
    [ $# = 0 ] || say "iptables cannot be used here: networks that are internal are not closed to the others, and containers reach nothing outside"
}

# ---- The run -------------------------------------------------------------------------------------------------------

# Run by `compose`, in the namespaces if the engine is its own.
compose_inside() {
    exec 8>&2
    trap 'take_down $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1 COMPOSE_HTTP_TIMEOUT=300
    [ -z "${REDIAL_OWN_ENGINE:-}" ] || start_engine
    compose_program
    name_images
    program
    settings
    say "building Redial's image"
    logged composed build dispatcher
    say "starting everything: 4 workers, 2 dispatchers"
    logged composed up --detach --no-build --scale worker=4 --scale dispatcher=2
    logged token
    break_and_check "$@"
}

# With the user `cli`, as an operator would.
token() {
    composed run --rm -T cli token create --for default.app --roles submit,read | grep '^rdl_' >"$state/ledger/token"
}

# Every fault of every service once before one comes again, in an order that the seed says. With each of them a part of the calls
# and a task are submitted, and the next one follows when they are accepted.
break_and_check() {
    local seed=$RANDOM calls=3000 faults=30 n=0 draws fault service choice submitting sick
    while [ $# -gt 1 ]; do
        case $1 in
            --seed) seed=$2 ;;
            --calls) calls=$2 ;;
            --faults) faults=$2 ;;
            *) fail "./dev compose: unknown option $1" ;;
        esac
        shift 2
    done
    [ $# = 0 ] || fail "./dev compose: unknown option $1"
    say "./dev compose --seed $seed --calls $calls --faults $faults"
    RANDOM=$seed
    token=$(<"$state/ledger/token")
    : >"$state/submitted"
    say "waiting until every tool and the model are registered"
    until [ "$(ask "SELECT count(*) FROM tools WHERE name IN ('read', 'idempotent', 'keyed', 'unsafe', 'echo', 'model-clerk')")" = 6 ]; do
        sleep 1
    done
    while [ "$n" -lt "$faults" ]; do
        # Random numbers are drawn here: a shell below this one has a sequence of its own.
        draws=
        for fault in kill crash restart pause disconnect; do
            for service in worker models dispatcher gateway nats postgres; do
                draws+="$RANDOM $fault $service $RANDOM"$'\n'
            done
        done
        while read -r fault service choice; do
            n=$((n + 1))
            [ "$n" -le "$faults" ] || break
            submit "$n" $((calls / faults)) &
            submitting=$!
            with_signals break_one "$fault" "$service" "$choice"
            SECONDS=0
            wait $submitting
            say "$n of $faults: $fault $service; everything is accepted $SECONDS s later"
        done < <(sort --numeric-sort <<<"${draws%$'\n'}" | cut --delimiter=' ' --fields=2-)
    done
    say "waiting until everything has ended"
    SECONDS=0
    until [ "$(left)" = 0 ]; do
        [ "$SECONDS" -lt 240 ] || fail "$(left) calls and tasks have not ended after 240 s"
        sleep 1
    done
    REDIAL_DATABASE_URL=$(database) "$built"/release/redial-chaos check --submitted "$state/submitted" --ledger "$state/ledger/calls"
    sick=$(composed ps -q | xargs docker inspect \
        --format '{{.Name}} {{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{end}}' |
        grep -v 'running healthy$\|migrate.* exited' || true)
    [ -z "$sick" ] || fail "these are not healthy: $sick"
    ! composed logs --no-color | grep panicked || fail "a process has panicked"
}

# submit N COUNT: so many calls and a task, again and again until all are accepted; their keys make that safe.
submit() {
    local file=$state/part-$1 task="{\"input\": \"do the work $1\", \"agent\": \"clerk\", \"key\": \"task-$1\"}"
    calls_of "$1" "$2" >"$file"
    cat "$file" >>"$state/submitted"
    until [ "$(post calls application/x-ndjson "@$file" | grep -c '"status":"\(accepted\|existing\)"')" = "$2" ]; do sleep 1; done
    until post tasks application/json "$task" | grep -q '"task":'; do sleep 1; done
    rm "$file"
}

post() {
    curl --silent --max-time 20 --header "Authorization: Bearer $token" --header "Content-Type: $2" --data-binary "$3" \
        "http://127.0.0.1:$REDIAL_HTTP_PORT/v1/$1" || true
}

# Of each effect as many, and of a tool that runs no program; some fail at first, some take 3 s.
calls_of() {
    local n tools=(read idempotent keyed unsafe echo)
    for ((n = 0; n < $2; n++)); do
        printf '{"tool": "%s", "arguments": {"n": %d, "seconds": %d, "fails": "%s"}, "key": "compose-%d-%d"}\n' \
            "${tools[n % 5]}" "$n" $((n % 47 ? 0 : 3)) "$([ $((n % 19)) = 0 ] && echo yes || echo no)" "$1" "$n"
    done
}

# break_one FAULT SERVICE CHOICE: one of its containers, which works again when this returns. Workers stay away for longer than a lease.
break_one() {
    local ids id pid network time=5
    case $2 in worker | models) time=20 ;; esac
    mapfile -t ids < <(composed ps -q "$2" | sort)
    id=${ids[$3 % ${#ids[@]}]}
    case $1 in
        kill) docker kill "$id" && sleep 5 && docker start "$id" ;;
        # Docker starts it again. The engine's processes may not be those of this machine.
        crash)
            pid=$(docker inspect --format '{{.State.Pid}}' "$id")
            if grep -q "$id" "/proc/$pid/cgroup"; then kill -KILL "$pid"; else echo "not possible with this engine" >&2; fi ;;
        restart) docker restart --time 60 "$id" ;;
        pause) docker pause "$id" && sleep $time && docker unpause "$id" ;;
        disconnect)
            case $2 in worker | models | nats) network=${project}_workers ;; *) network=${project}_data ;; esac
            docker network disconnect "$network" "$id"
            sleep $time
            docker network connect --alias "$2" "$network" "$id" ;;
    esac >/dev/null
}

# Calls and tasks that have not ended.
left() {
    ask "SELECT (SELECT count(*) FROM calls WHERE finished_at IS NULL) + (SELECT count(*) FROM tasks WHERE finished_at IS NULL)"
}

ask() {
    composed exec -T postgres psql --username redial --no-align --tuples-only --command "$1" redial 2>/dev/null | tr -d '\r' || true
}

database() {
    local password
    password=$(sed -n 's/^REDIAL_POSTGRES_PASSWORD=//p' "$state/env")
    echo "postgres://redial:$password@127.0.0.1:$REDIAL_CHECK_POSTGRES_PORT/redial?sslmode=disable"
}

# What it prints is shown only if it fails.
logged() { with_signals "$@" >"$state/step.log" 2>&1 || fail "this failed: $*; the end of what it said: $(tail -n 20 "$state/step.log")"; }

# A signal is heeded at once, and not after the program has ended.
with_signals() {
    local result=0
    "$@" &
    running=$!
    wait "$running" || result=$?
    running=
    return $result
}

compose_program() {
    if docker compose version >/dev/null 2>&1; then composer=(docker compose); else composer=(docker-compose); fi
    type -P "${composer[0]}" >/dev/null || fail "docker compose is missing (Debian: docker-compose)"
    say "using $("${composer[@]}" version | head -n 1)"
}

composed() {
    "${composer[@]}" --project-name $project --project-directory . --env-file "$state/env" \
        --file docker-compose.yml --file $files/override.yml "$@"
}

# As a user sets them, with files and free ports of its own.
settings() {
    rm -rf "$state/ledger"
    mkdir -p "$state/ledger"
    # Tools write to it as the image's user.
    chmod 0777 "$state/ledger"
    : >"$state/ledger/calls"
    chmod 0666 "$state/ledger/calls"
    export REDIAL_TOOLS_FILE=./$files/tools.toml REDIAL_AGENTS_FILE=./$files/agents.toml REDIAL_MODELS_FILE=./$files/models.toml
    export REDIAL_CHECK_LEDGER=$state/ledger
    export REDIAL_NATS_PORT REDIAL_HTTP_PORT REDIAL_CHECK_POSTGRES_PORT
    REDIAL_NATS_PORT=$(free_port)
    REDIAL_HTTP_PORT=$(free_port)
    REDIAL_CHECK_POSTGRES_PORT=$(free_port)
    (umask 077 && deploy/make-env >"$state/env")
}

free_port() {
    local port
    while port=$((20000 + RANDOM % 10000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

take_down() {
    # Another signal must not stop it half-way; and it may come while output goes to a file.
    trap '' EXIT INT TERM
    exec 2>&8
    [ -z "${running:-}" ] || kill "$running" 2>/dev/null || true
    if [ ${#composer[@]} != 0 ] && [ -s "$state/env" ]; then
        [ "$1" = 0 ] || composed logs --no-color >"$state/containers.log" 2>&1 || true
        say "taking everything down"
        composed down --volumes --remove-orphans --timeout 20 >"$state/step.log" 2>&1 ||
            say "docker-compose down failed: $(tail -n 5 "$state/step.log")"
        [ "$1" = 0 ] || say "the logs of all containers are in $state/containers.log"
    fi
    if [ -n "${dockerd:-}" ]; then
        kill "$dockerd" 2>/dev/null && wait "$dockerd" || true
    elif [ ${#composer[@]} != 0 ]; then
        docker image ls --quiet --filter "reference=$project/*" | sort -u | xargs --no-run-if-empty docker image rm --force >/dev/null || true
    fi
    exit "$1"
}
composer=()
