# Presto, with the same catalogs as Trino, and without authentication.
# Started on request only.
PRESTO_VERSION=0.287
presto_word=querymend.presto
presto_crash=KILL

presto_fetch() {
  # Its bundled ASM does not support class files of Java 17.
  local artifact managed=
  for artifact in asm asm-analysis asm-tree asm-util asm-commons; do
    managed+="<dependency><groupId>org.ow2.asm</groupId><artifactId>$artifact</artifactId><version>9.7</version></dependency>"
  done
  from_maven presto "$PRESTO_VERSION" com.facebook.presto presto-root presto-main "$CACHE/presto-$PRESTO_VERSION" "$managed" presto-memory presto-tpch
}

presto_set_up() { # folder
  local folder=$1 port; port=$(free_port); echo "$port" > "$STATE/presto.port"
  mkdir -p "$folder/etc/catalog"
  echo connector.name=memory > "$folder/etc/catalog/memory.properties"
  echo connector.name=tpch > "$folder/etc/catalog/tpch.properties"
  cat > "$folder/etc/config.properties" <<EOT
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port=$port
discovery-server.enabled=true
discovery.uri=http://127.0.0.1:$port
node.environment=test
node.id=one
node.bind-ip=127.0.0.1
node.internal-address=127.0.0.1
query.max-memory=200MB
query.max-memory-per-node=200MB
query.max-total-memory-per-node=250MB
plugin.config-dir=$folder/etc/catalog
plugin.dir=$CACHE/presto-$PRESTO_VERSION/plugin
EOT
}

presto_start() { # folder
  local package opens=()
  for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
    java.util.concurrent.atomic java.util.regex java.time sun.nio.ch; do opens+=(--add-opens="java.base/$package=ALL-UNNAMED"); done
  start_java presto "$1" "${opens[@]}" -Dquerymend.presto=1 -Djdk.attach.allowAttachSelf=true -Djava.io.tmpdir="$1" \
    -Dconfig=etc/config.properties -cp "$CACHE/presto-$PRESTO_VERSION/lib/*" com.facebook.presto.server.PrestoServer
  await 180 "$(kept presto.pid)" "$presto_word" in_service presto || { tail -20 "$1/log" >&2; fail "Presto did not start" "see above"; }
  presto_tables presto
}

presto_fill() { :; }

presto_address() { echo "presto://reader@127.0.0.1:$(kept presto.port)/memory/default"; }

# --- Shared by Presto and Trino.

in_service() { curl -sf "http://127.0.0.1:$(kept "$1.port")/v1/info" | grep -q '"starting" *: *false'; } # name

# Creates the tables of the tests. Right after the start, a server may not have registered itself as a worker yet.
presto_tables() { # name
  python3 - "$1" "$(kept "$1.port")" <<'PYTHON'
import json, sys, time, urllib.request
family, port = sys.argv[1].title(), sys.argv[2]
head = {f"X-{family}-{name}": value for name, value in [("User", "owner"), ("Catalog", "memory"), ("Schema", "default")]}

def run(sql):
    answer = {"nextUri": f"http://127.0.0.1:{port}/v1/statement"}
    body = sql.encode()
    while "nextUri" in answer:
        with urllib.request.urlopen(urllib.request.Request(answer["nextUri"], body, head)) as reply:
            answer, body = json.load(reply), None
        if "error" in answer:
            return answer["error"]

remarks = ["COMMENT ON TABLE things IS 'What there is'", "COMMENT ON COLUMN things.weight IS 'in kg'"] if family == "Trino" else []
for sql in [
    "CREATE TABLE things (id INTEGER, name VARCHAR(40), weight DOUBLE)",
    "INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zw\u00f6lf O''Clock', NULL), (3, NULL, -0.25)",
    'CREATE TABLE "gr\u00f6\u00dfen \u8868" ("na\u00efve col" INTEGER, "\u03a3" INTEGER)',
    'INSERT INTO "gr\u00f6\u00dfen \u8868" VALUES (7, 8)',
    "CREATE SCHEMA other",
    "CREATE TABLE other.things (code VARCHAR)",
    "CREATE VIEW heavy AS SELECT id, weight FROM things WHERE weight > 1",
    "SELECT count(*) FROM things",
] + remarks:
    for wait in [0.2] * 50 + [0]:
        error = run(sql)
        if not wait or not error or error["errorName"] not in ("NO_NODES_AVAILABLE", "SERVER_STARTING_UP", "GENERIC_INSUFFICIENT_RESOURCES"):
            break
        time.sleep(wait)
    if error:
        sys.exit(f"{sql}: {error['errorName']}: {error['message']}")
PYTHON
}
