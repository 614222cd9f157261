# The image holds the static binary, the certificates and the time zones, and nothing else: no shell,
# no package manager, no root.
#
#   docker build -t sluice --build-arg VERSION="$(git describe --always --dirty)" .
#   docker run -v ./config.toml:/etc/sluice/config.toml:ro -p 8080:8080 sluice
#
# GOPROXY: where Go modules come from, when proxy.golang.org is out of reach:
#   --build-arg GOPROXY=https://goproxy.cn,direct

FROM golang:1.26-bookworm AS build
ARG GOPROXY=https://proxy.golang.org,direct
ENV GOPROXY=$GOPROXY GOTOOLCHAIN=local CGO_ENABLED=0
WORKDIR /src
# The modules first: they stay in the build cache for as long as go.mod and go.sum do.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /sluice ./cmd/sluice

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
ENV ZONEINFO=/zoneinfo.zip
COPY --from=build /sluice /sluice
USER 65532:65532
# 8080 shoppers, 8091 health and metrics. The admin listener is on loopback unless a token file is set.
EXPOSE 8080 8091
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s --retries=3 CMD ["/sluice", "healthcheck"]
ENTRYPOINT ["/sluice"]
CMD ["run", "--config", "/etc/sluice/config.toml"]
