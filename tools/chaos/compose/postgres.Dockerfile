# Stands in for the image `postgres`: Debian's package with the interface that docker-compose.yml uses.
ARG SERVERS
FROM ${SERVERS}
COPY postgres-entrypoint /usr/local/bin/
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint"]
CMD ["postgres"]
