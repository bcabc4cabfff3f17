#!/bin/sh
# Creates the roles of roles.sql and sets their passwords from the environment. The image of Postgres runs it once, when its
# volume is empty. By hand, also to change passwords:
#   docker compose exec postgres sh /docker-entrypoint-initdb.d/roles.sh
set -eu

sql() {
    psql --no-psqlrc --set=ON_ERROR_STOP=1 --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" "$@"
}

sql --file=/etc/redial/roles.sql
sql <<'SQL'
\getenv owner REDIAL_POSTGRES_OWNER_PASSWORD
\getenv dispatcher REDIAL_POSTGRES_DISPATCHER_PASSWORD
\getenv reader REDIAL_POSTGRES_READER_PASSWORD
\getenv gateway REDIAL_POSTGRES_GATEWAY_PASSWORD
ALTER ROLE redial_owner PASSWORD :'owner';
ALTER ROLE redial_dispatcher PASSWORD :'dispatcher';
ALTER ROLE redial_reader PASSWORD :'reader';
ALTER ROLE redial_gateway PASSWORD :'gateway';
SQL
