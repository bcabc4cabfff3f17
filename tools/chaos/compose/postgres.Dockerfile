# Stands in for the image `postgres`: Debian's package with the interface that docker-compose.yml uses.
ARG SERVERS
FROM ${SERVERS}
COPY postgres-entrypoint /usr/local/bin/
# The number that this user has in the image.
RUN usermod --non-unique --uid 999 postgres && groupmod --non-unique --gid 999 postgres \
    && install --directory --owner=postgres --group=postgres --mode=0700 /var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint"]
CMD ["postgres"]
