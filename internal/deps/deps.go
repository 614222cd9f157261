// Package deps pins what is about to be used.
package deps

import (
	_ "github.com/BurntSushi/toml"
	_ "github.com/HdrHistogram/hdrhistogram-go"
	_ "github.com/alecthomas/kong"
	_ "github.com/gaissmai/bart"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/pires/go-proxyproto"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/sony/gobreaker/v2"
	_ "github.com/valyala/fasthttp"
	_ "github.com/valyala/fastjson"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/text/language"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
)
