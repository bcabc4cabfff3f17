# Stands in for the image `nats`: Debian's package with the interface that docker-compose.yml uses.
ARG SERVERS
FROM ${SERVERS}
ENTRYPOINT ["nats-server"]
