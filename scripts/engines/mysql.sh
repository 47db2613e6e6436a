# MariaDB, for both MySQL and MariaDB URLs, from system packages.
# The server is in a folder that is on the PATH of root only.
PATH=$PATH:/usr/sbin
mysql_word=mariadbd
mysql_crash=KILL

mysql_address() { echo "mysql://reader:reader@127.0.0.1:$(kept mysql.port)/app"; }

mysql_fetch() {
  system_packages mariadbd mariadb-server-core mariadb-client-core
  system_packages mariadb mariadb-client-core
}

# User that runs the server, which refuses to run as root.
mysql_user() { if [ "$(id -u)" = 0 ]; then echo nobody; else id -un; fi; }

mysql_set_up() { # folder
  local folder=$1
  mkdir "$folder/mysql" "$folder/mysql/files"; to_nobody "$folder/mysql"
  mariadb-install-db --no-defaults --user="$(mysql_user)" --datadir="$folder/mysql/data" --auth-root-authentication-method=normal \
    --skip-test-db > "$folder/install.log" 2>&1 || { tail -5 "$folder/install.log" >&2; fail "MariaDB could not be set up" "see above"; }
  # Certificate for TLS, with a private certificate authority.
  (cd "$folder/mysql" && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 3650 -subj /CN=tests \
    -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE) > "$folder/openssl.log" 2>&1 \
    || { tail -5 "$folder/openssl.log" >&2; fail "no certificate could be created for MariaDB" "is openssl installed?"; }
  to_nobody "$folder/mysql"
  free_port > "$STATE/mysql.port"
}

mysql_start() { # folder
  local data=$1/mysql
  # Files may be written to one folder only, for the attack tests.
  (let_go; exec setsid mariadbd --no-defaults --user="$(mysql_user)" --datadir="$data/data" --socket="$data/socket" --pid-file="$data/pid" \
    --bind-address=127.0.0.1 --port="$(kept mysql.port)" --secure-file-priv="$data/files" --innodb-flush-log-at-trx-commit=0 \
    --ssl-cert="$data/certificate.pem" --ssl-key="$data/key.pem" --innodb-buffer-pool-size=64M --skip-log-bin --skip-name-resolve --local-infile=1 >> "$data/log" 2>&1 < /dev/null) &
  echo $! > "$STATE/mysql.pid"
  # The process closes inherited descriptors first and executes the server afterwards.
  wait_for_exec "$(kept mysql.pid)" mariadbd
  await 60 "$(kept mysql.pid)" mariadbd mariadb --no-defaults -uroot -S "$data/socket" -e 'SELECT 1' \
    || { tail -5 "$data/log" >&2; fail "MariaDB did not start" "see above"; }
}

mysql_fill() { # folder
  mariadb --no-defaults --default-character-set=utf8mb4 -uroot -S "$1/mysql/socket" <<'SQL'
CREATE DATABASE app CHARACTER SET utf8mb4;
-- More rights than a reader should have, so that the locks are tried and not the rights.
CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'reader';
GRANT ALL ON app.* TO reader@'127.0.0.1';
-- And one who may do everything, for the attacks.
CREATE USER owner@'127.0.0.1' IDENTIFIED BY 'owner';
GRANT ALL ON *.* TO owner@'127.0.0.1' WITH GRANT OPTION;
USE app;
CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(40), weight DOUBLE PRECISION);
INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zwölf O''Clock', NULL), (3, NULL, -0.25);
CREATE TABLE `größen 表` (`naïve col` INTEGER, `Σ` INTEGER);
INSERT INTO `größen 表` VALUES (7, 8);
SQL
}
