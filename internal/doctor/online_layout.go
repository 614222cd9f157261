package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/stockgate"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// tryLayout reads the shop's own keys of skus, or of any SKU where none is named.
func (o *Report) tryLayout(ctx context.Context, c *config.Config, r *stockgate.Redis, way *redisconn.Client,
	skus []string) {
	l, err := stores.ShopLayout(c)
	if err != nil {
		o.Fail("layout", "%v", err)
		return
	}
	k := shopKeys{Report: o, config: c, layout: l, way: way}
	if len(skus) == 0 {
		k.tryAny(ctx, r)
		return
	}
	out := make([]layout.Reading, len(skus))
	if err := r.Read(ctx, skus, out); err != nil {
		o.Fail("layout", "%v; %s", err, redisconn.Remedy(err))
		return
	}
	for i, sku := range skus {
		k.report(ctx, sku, out[i])
	}
}

// shopKeys are the keys of the shop that the online checks look at.
type shopKeys struct {
	*Report
	config *config.Config
	layout *layout.Layout
	way    *redisconn.Client
}

// report says what the layout makes of the key of sku.
func (k *shopKeys) report(ctx context.Context, sku string, r layout.Reading) {
	key := k.layout.Key(sku)
	switch {
	case r.Fault != nil:
		k.Fail("layout", "%v%s", r.Fault, k.remedy(ctx, key))
	case !r.Exists && !k.config.HasGate("check") && k.config.Stock.Layout.Type != "hash_sold":
		k.OK("layout", "%s: %s is not there yet; the mirror makes it", sku, key)
	case !r.Exists && k.layout.SharesHash():
		k.Fail("layout", "%s: the hash %s is not there, or has no field for it; write the field as the shop does, or "+
			"correct stock.layout", sku, shown64(key))
	case !r.Exists && k.config.UsesLedger():
		k.Warn("layout", "%s: the key %s is not there: routes with gate = \"check\" cannot sell it; %s", sku, shown64(key),
			k.findNear(ctx, key))
	case !r.Exists:
		k.Fail("layout", "%s: the key %s is not there; %s", sku, shown64(key), k.findNear(ctx, key))
	case !r.OnSale:
		k.Warn("layout", "%s: %d left in %s, but it is not on sale; set the status as the shop does, or correct "+
			"stock.layout.status_open", sku, r.Left, key)
	default:
		if ends := k.ends(ctx, key); ends > 0 {
			k.Warn("layout", "%s: %d left in %s, which expires in %s: its orders then get unknown_sku; write it without a "+
				"time to live, or one beyond the sale", sku, r.Left, key, ends)
			return
		}
		k.OK("layout", "%s: %d left in %s", sku, r.Left, key)
	}
}

// ends is when a key expires; 0 = never, or this user may not ask.
func (k *shopKeys) ends(ctx context.Context, key string) (in time.Duration) {
	_ = k.way.To(key).Do(ctx, func(ctx context.Context, r redisconn.Commands) (err error) {
		in, err = r.TTL(ctx, key).Result()
		return err
	}, func(error) error { return nil })
	return max(in, 0)
}

// tryAny is for a configuration that names no SKU.
func (k *shopKeys) tryAny(ctx context.Context, r *stockgate.Redis) {
	const few = 20
	all, err := r.List(ctx, few)
	switch {
	case err != nil:
		k.Fail("layout", "%v; %s", err, redisconn.Remedy(err))
	case len(all) == 0:
		k.Warn("layout", "no key looks like %s: %s; or name a SKU with --sku", shown64(k.layout.Key("SKU")),
			k.findNear(ctx, k.layout.Key("")))
	default:
		for _, one := range all {
			k.report(ctx, one.SKU, one.Reading)
		}
	}
}

// shown64 is a key as a person reads it.
func shown64(key string) string { return fmt.Sprintf("%.64q", key) }

// remedy says what to do about a key that cannot be read as configured.
func (k *shopKeys) remedy(ctx context.Context, key string) (text string) {
	_ = k.way.To(key).Do(ctx, func(ctx context.Context, r redisconn.Commands) error {
		kind, err := r.Type(ctx, key).Result()
		if err != nil {
			return err // the key may be at another server
		}
		switch kind {
		case "hash":
			text = fmt.Sprintf("; it is a hash with the fields %s: correct stock.layout.type and its fields",
				strings.Join(fieldsOf(ctx, r, key), " "))
		case "string":
			text = "; it is a string"
			if strings.HasPrefix(r.GetRange(ctx, key, 0, 3).Val(), "\xac\xed\x00\x05") {
				text += " that Java has serialized: let the shop write it with StringRedisTemplate, " +
					"or set valueSerializer to a StringRedisSerializer"
			} else {
				text += ": correct stock.layout.type, or what the shop writes there"
			}
		case "", "none":
		default:
			text = fmt.Sprintf("; it is a %s: correct stock.layout.type", kind)
		}
		return nil
	}, func(error) error { return nil })
	return text
}

// fieldsOf are some fields of a hash.
func fieldsOf(ctx context.Context, r redisconn.Commands, key string) (names []string) {
	pairs, _, _ := r.HScan(ctx, key, 0, "", 20).Result()
	for i := 0; i+1 < len(pairs) && i < 20; i += 2 {
		names = append(names, fmt.Sprintf("%.32q", pairs[i]))
	}
	return names
}

const (
	scanSteps  = 100 // of some 1,000 keys each
	javaString = "\xac\xed\x00\x05t\x00"
)

// findNear looks for the key under another name, as far as a bounded walk goes, and says what to do then.
func (k *shopKeys) findNear(ctx context.Context, key string) (text string) {
	plain := strings.TrimPrefix(key, k.config.Stock.Layout.Prefix)
	servers, _ := k.way.Servers(ctx)
	var found []string
	keys := int64(0)
	for _, server := range servers {
		_ = server.Do(ctx, func(ctx context.Context, r redisconn.Commands) error {
			n, err := r.DBSize(ctx).Result()
			if keys += n; err != nil {
				keys++ // it may have some
			}
			return scanned(ctx, r, "*"+escaped(plain)+"*", &found)
		}, func(error) error { return nil })
	}
	slices.Sort(found)
	for _, name := range found {
		if cure := k.sibling(name, plain); cure != "" {
			return cure
		}
	}
	if len(servers) > 0 && keys == 0 {
		return "this database has no key at all: correct stock.redis.addresses and db"
	}
	return "stock it as the shop does, or correct stock.layout.key and prefix"
}

// scanned adds a few keys of one server that a pattern finds.
func scanned(ctx context.Context, r redisconn.Commands, pattern string, found *[]string) error {
	cursor := uint64(0)
	for range scanSteps {
		keys, next, err := r.Scan(ctx, cursor, pattern, 1000).Result()
		if err != nil {
			return err
		}
		*found = append(*found, keys...)
		if cursor = next; cursor == 0 || len(*found) >= 20 {
			break
		}
	}
	return nil
}

// sibling says why a key that contains the one that was looked for is it, under another name.
func (k *shopKeys) sibling(name, plain string) string {
	before, after, ok := strings.Cut(name, plain)
	switch {
	case !ok || name == plain && k.config.Stock.Layout.Prefix == "":
		return ""
	case strings.HasPrefix(name, javaString):
		return fmt.Sprintf("but %q is: Spring's default serializer has mangled it; let the shop use StringRedisTemplate, "+
			"or set keySerializer to a StringRedisSerializer", name)
	case after == "" || plain == "" || strings.HasSuffix(k.layout.Key(""), plain):
		return fmt.Sprintf("but %.80q is: write prefix = %q into [stock.layout]", name, before)
	}
	return ""
}

// escaped is text as a part of a pattern.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}
