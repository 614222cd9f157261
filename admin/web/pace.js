// How fast a SKU sells, and when it will be gone.

const steady = 30; // seconds that the estimate looks back

export const stockOf = (s, sku) => s?.stock.find((one) => one.sku === sku);

// stockNow is what Redis says. While it is away, a second only repeats what it said before.
export const away = (s) => Boolean(s?.redis && !s.redis.up);
export const stockNow = (s, sku) => (away(s) ? undefined : stockOf(s, sku));

// rest is in how long nothing is free: from the pace of the last seconds. null = at this pace never.
export function rest(places, sku) {
  const known = places.slice(-steady).map((s) => s && { at: s.at, ...stockNow(s, sku) }).filter((s) => s?.sku);
  if (known.length < 2) return null;
  const taken = (s) => s.sold + s.held, now = known[known.length - 1];
  const began = known.findIndex((s) => taken(s) !== taken(known[0])); // a sale that has just begun is not slow
  const first = known[Math.max(0, began - 1)], gone = taken(now) - taken(first), seconds = now.at - first.at;
  return now.free > 0 && gone > 0 && seconds > 0 ? { pace: gone / seconds, ms: (1000 * now.free * seconds) / gone } : null;
}
