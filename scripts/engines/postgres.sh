# PostgreSQL. Download and start are in servers.sh, because the example store uses it too.
postgres_word=postgres
# Immediate shutdown: disconnects all clients and recovers at the next start.
postgres_crash=QUIT

postgres_address() { echo "postgres://reader:reader@127.0.0.1:$(kept postgres.port)/app"; }

postgres_fill() { # folder
  PGPASSWORD=querymend "$(kept postgres.bin)/psql" -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(kept postgres.port)" -U postgres -d postgres -c 'CREATE DATABASE app'
  PGPASSWORD=querymend "$(kept postgres.bin)/psql" -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(kept postgres.port)" -U postgres -d app <<'EOF'
CREATE ROLE reader LOGIN PASSWORD 'reader';
CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(40), weight DOUBLE PRECISION);
INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zwölf O''Clock', NULL), (3, NULL, -0.25);
CREATE TABLE "größen 表" ("naïve col" INTEGER, "Σ" INTEGER);
INSERT INTO "größen 表" VALUES (7, 8);
CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0);
CREATE TYPE pair AS (a INTEGER, b TEXT);
-- More rights than a reader should have, so that the locks are tried and not the rights.
GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
GRANT CREATE ON SCHEMA public TO reader;
EOF
}
