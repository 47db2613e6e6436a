# Trino 435, the last version for Java 17, with an in-memory catalog and a generated one (TPC-H).
#
# Clients use TLS with a self-signed certificate and a password. The port without TLS is used by this script only.
TRINO_VERSION=435
trino_word=querymend.trino
trino_crash=KILL

trino_fetch() {
  from_maven trino "$TRINO_VERSION" io.trino trino-root trino-main "$CACHE/trino-$TRINO_VERSION" '' trino-memory trino-tpch
}

trino_set_up() { # folder
  local folder=$1 lib=$CACHE/trino-$TRINO_VERSION/lib port secure
  port=$(free_port); secure=$(free_port)
  echo "$port" > "$STATE/trino.port"; echo "$secure" > "$STATE/trino.secure"
  mkdir -p "$folder/etc/catalog" "$folder/plugin/passwords/META-INF/services" "$folder/classes"
  cp -r "$CACHE/trino-$TRINO_VERSION/plugin/." "$folder/plugin"
  # The launcher and the password authenticator are not packaged; they are a few lines each.
  cat > "$folder/Main.java" <<JAVA
public class Main { public static void main(String[] none) { new io.trino.server.Server().start("$TRINO_VERSION"); } }
JAVA
  cat > "$folder/Passwords.java" <<'JAVA'
import io.trino.spi.Plugin;
import io.trino.spi.security.*;
import java.util.*;

public class Passwords implements Plugin {
    public Iterable<PasswordAuthenticatorFactory> getPasswordAuthenticatorFactories() {
        return List.of(new PasswordAuthenticatorFactory() {
            public String getName() { return "one"; }
            public PasswordAuthenticator create(Map<String, String> config) {
                return (user, password) -> {
                    if (!password.equals("reader")) throw new AccessDeniedException("Invalid credentials");
                    return new BasicPrincipal(user);
                };
            }
        });
    }
}
JAVA
  # Disable the optimizing compiler for short-lived tools: 3 s of CPU time instead of 6.
  local quick=(-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC)
  javac "${quick[@]}" -proc:none -cp "$lib/*" -d "$folder/classes" "$folder/Main.java"
  javac "${quick[@]}" -proc:none -cp "$lib/*" -d "$folder/plugin/passwords" "$folder/Passwords.java"
  echo Passwords > "$folder/plugin/passwords/META-INF/services/io.trino.spi.Plugin"
  (cd "$folder/plugin/passwords" && jar -cf passwords.jar ./*.class META-INF && rm -rf ./*.class META-INF)
  keytool "${quick[@]}" -genkeypair -alias trino -keyalg EC -groupname secp256r1 -dname CN=127.0.0.1 -ext san=ip:127.0.0.1,dns:localhost \
    -validity 3650 -storetype PKCS12 -keystore "$folder/key.p12" -storepass querymend > /dev/null 2>&1
  keytool "${quick[@]}" -exportcert -rfc -alias trino -keystore "$folder/key.p12" -storepass querymend > "$folder/certificate.pem" 2> /dev/null
  echo connector.name=memory > "$folder/etc/catalog/memory.properties"
  echo connector.name=tpch > "$folder/etc/catalog/tpch.properties"
  echo password-authenticator.name=one > "$folder/etc/password-authenticator.properties"
  cat > "$folder/etc/config.properties" <<EOT
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port=$port
http-server.https.enabled=true
http-server.https.port=$secure
http-server.https.keystore.path=$folder/key.p12
http-server.https.keystore.key=querymend
http-server.authentication.type=PASSWORD
http-server.authentication.allow-insecure-over-http=true
internal-communication.shared-secret=querymend
discovery.uri=http://127.0.0.1:$port
node.environment=test
node.id=one
node.bind-ip=127.0.0.1
node.internal-address=127.0.0.1
query.max-memory=200MB
query.max-history=20
query.min-expire-age=30s
query.max-memory-per-node=200MB
memory.heap-headroom-per-node=150MB
catalog.config-dir=$folder/etc/catalog
plugin.dir=$folder/plugin
EOT
}

trino_start() { # folder
  start_java trino "$1" -Dquerymend.trino=1 -Djdk.attach.allowAttachSelf=true -Dconfig=etc/config.properties \
    -cp "$1/classes:$CACHE/trino-$TRINO_VERSION/lib/*" Main
  await 180 "$(kept trino.pid)" "$trino_word" in_service trino || { tail -20 "$1/log" >&2; fail "Trino did not start" "see above"; }
  # In-memory tables are lost when the server stops.
  presto_tables trino
}

# The tables are created at each start.
trino_fill() { :; }

trino_address() { echo "trino://reader:reader@127.0.0.1:$(kept trino.secure)/memory/default?sslrootcert=$(kept trino.folder)/certificate.pem"; }
