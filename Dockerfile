# The image holds the static binaries, the certificates and the time zones, and nothing else: no shell,
# no package manager, no root.
#
#   docker build -t sluice .
#   docker buildx build --platform linux/amd64,linux/arm64 -t sluice --build-arg VERSION="$(sh tools/version)" .
#   docker run -v ./config.toml:/etc/sluice/config.toml:ro -p 8080:8080 sluice
#
# GOPROXY: where Go modules come from, when proxy.golang.org is out of reach:
#   --build-arg GOPROXY=https://goproxy.cn,direct

# The compiler runs on the machine that builds, and compiles for the platform that was asked for: nothing is emulated.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG GOPROXY=https://proxy.golang.org,direct
ENV GOPROXY=$GOPROXY GOTOOLCHAIN=local CGO_ENABLED=0
WORKDIR /src
# The modules first: they stay in the build cache for as long as go.mod and go.sum do.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Empty, it is the release in the file VERSION. TARGETOS and TARGETARCH are set by BuildKit.
ARG VERSION
ARG TARGETOS
ARG TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -tags nethttpomithttp2 -buildvcs=false -ldflags "-s -w -X sluice/internal/cli.linked=$VERSION" \
    -o /built/ ./cmd/sluice ./cmd/sluice-settle

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
ENV ZONEINFO=/zoneinfo.zip
ENV OPS_LISTEN=":8091"
# Used unless another one is mounted; it reads UPSTREAM, HEALTH_PATH, REDIS_ADDR and SLUICE_MODE, and observes by default.
COPY deploy/config.toml /etc/sluice/config.toml
COPY --from=build /built/sluice /sluice
COPY --from=build /built/sluice-settle /sluice-settle
USER 65532:65532
# 8080 shoppers, 8091 health and metrics.
# The admin listener is on loopback unless a token file is set.
EXPOSE 8080 8091
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s --retries=3 CMD ["/sluice", "healthcheck"]
ENTRYPOINT ["/sluice"]
CMD ["run", "--config", "/etc/sluice/config.toml"]
