# Spark's Thrift server, which implements the protocol of HiveServer2, from the source package of PySpark. SPARK_AUTH=NOSASL
# starts it without a SASL handshake; otherwise it accepts any user name and password.
spark_word=HiveThriftServer2
spark_crash=KILL
SPARK_VERSION=3.5.9
SPARK_SHA256=ea27adc39ddac9413b8951e45aa748cbed6c785971b81386efc41938f6243d93

spark_fetch() {
  system_packages java openjdk-17-jre-headless
  [ -d "$CACHE/spark-$SPARK_VERSION" ] && return
  working
  echo "fetching pyspark $SPARK_VERSION (318 MB)" >&2
  # pip verifies the checksum before it runs any code of the package.
  echo "pyspark==$SPARK_VERSION --hash=sha256:$SPARK_SHA256" > "$work/wanted"
  fetch_within_deadline "pyspark $SPARK_VERSION" python3 -m pip download "${PIP[@]}" --no-deps --no-binary pyspark --require-hashes -r "$work/wanted" \
    --dest "$work" || fail "pip cannot download pyspark $SPARK_VERSION" "is a Python package index reachable? is there 700 MB of disk space?"
  mkdir "$work/files"
  tar xzf "$work/pyspark-$SPARK_VERSION.tar.gz" -C "$work/files" --strip-components=2 --no-same-owner "pyspark-$SPARK_VERSION/deps/jars"
  worked files "$CACHE/spark-$SPARK_VERSION"
}

spark_java() { # folder; sets an array with the command, so that the started process is Java itself
  local folder=$1 opens=() package
  # Options that Spark requires for Java 17, as in its own scripts.
  for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
    java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
  done
  # Optimize for a fast start rather than for peak performance.
  spark_java=(java -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto "${opens[@]}" -Djdk.reflect.useDirectMethodHandle=false \
    -Djava.io.tmpdir="$folder/tmp" -Dlog4j2.configurationFile="$folder/log4j2.properties" -cp "$CACHE/spark-$SPARK_VERSION/jars/*")
}

spark_set_up() { # folder
  mkdir "$1/tmp" "$1/warehouse"
  free_port > "$STATE/spark.port"
  echo "${SPARK_AUTH:-NONE}" > "$STATE/spark.auth"
  cat > "$1/log4j2.properties" <<'END'
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{HH:mm:ss} %p %c{1}: %m%n
logger.server.name=org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
logger.server.level=info
END
}

spark_start() { # folder
  local folder=$1 log=$1/log; spark_java "$1"
  # Delete the state of a killed server.
  rm -f "$log"
  (
    cd "$folder"; let_go
    export SPARK_HOME=$folder SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_DIRS=$folder/tmp
    "${spark_java[@]}" -Dderby.system.home="$folder" org.apache.spark.deploy.SparkSubmit \
      --class org.apache.spark.sql.hive.thriftserver.HiveThriftServer2 --master 'local[2]' --name querymend \
      --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 \
      --conf spark.sql.warehouse.dir="file://$folder/warehouse" --conf spark.sql.shuffle.partitions=1 \
      --conf "spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName=$folder/metastore;create=true" \
      --conf spark.sql.codegen.wholeStage=false --conf spark.sql.adaptive.enabled=false \
      --conf spark.hadoop.datanucleus.schema.autoCreateAll=true \
      spark-internal --hiveconf hive.server2.thrift.bind.host=127.0.0.1 --hiveconf hive.server2.thrift.port="$(kept spark.port)" \
      --hiveconf hive.server2.authentication="$(kept spark.auth)" > "$log" 2>&1 < /dev/null &
    echo $! > "$STATE/spark.pid"
  )
  # The process has another name until it executes Java.
  wait_for_exec "$(kept spark.pid)" "$spark_word"
  await 180 "$(kept spark.pid)" "$spark_word" grep -q 'HiveThriftServer2 started' "$log" \
    || { tail -20 "$log" >&2; fail "Spark did not start" "see above"; }
}

spark_address() {
  local auth=plain; [ "$(kept spark.auth)" != NOSASL ] || auth=nosasl
  echo "spark://reader:reader@127.0.0.1:$(kept spark.port)/default?auth=$auth"
}

spark_fill() { # folder
  local auth=; [ "$(kept spark.auth)" != NOSASL ] || auth=';auth=noSasl'
  spark_java "$1"
  cat > "$1/fill.sql" <<'END'
CREATE TABLE things (id INT, name VARCHAR(40), weight DOUBLE) USING parquet;
INSERT INTO things VALUES (1, 'one', CAST(1.5 AS DOUBLE)), (2, 'zwölf O\'Clock', NULL), (3, NULL, CAST(-0.25 AS DOUBLE));
-- Names of other scripts are for columns only, in the metastore that Spark has of Hive.
CREATE TABLE groessen (`naïve col` INT, `Σ` INT) USING parquet;
INSERT INTO groessen VALUES (7, 8);
END
  "${spark_java[@]}" org.apache.hive.beeline.BeeLine --silent=true -u "jdbc:hive2://127.0.0.1:$(kept spark.port)/default$auth" \
    -n reader -p reader -f "$1/fill.sql" > "$1/fill.log" 2>&1 || { tail -20 "$1/fill.log" >&2; fail "the tables could not be created" "see above"; }
}
