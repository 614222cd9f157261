// The view "Live" of this instance.

import { ask } from "./api.js";
import { on } from "./bus.js";
import { chart, show } from "./charts.js";
import { $, el, fill, setText, table } from "./dom.js";
import { watched } from "./feed.js";
import { millis, percent, rate, short, whole } from "./format.js";
import { latest, per, spread, sum } from "./history.js";
import { nameOf, shade, stacked } from "./reasons.js";
import { paint } from "./theme.js";
import { say } from "./words.js";

// figures are the numbers at the head: id, and of a second the number and a line below it.
const figures = {
  in: (s) => [rate(per(s, s.requests)), say("connections_n", { n: whole(s.connections) })],
  admitted: (s) => [rate(per(s, s.admitted)), s.requests ? say("of_all", { n: percent(s.admitted, s.requests) }) : say("none")],
  rejected: (s) => {
    const [most] = Object.entries(s.rejected).sort((a, b) => b[1] - a[1]), would = sum(s.observed);
    return [rate(per(s, sum(s.rejected) + sum(s.rejected_connections))), would ? say("would_be_ps", { ps: rate(per(s, would)) }) : most ? `${say("mostly")} ${nameOf(most[0])}` : say("none")];
  },
  inflight: (s) => [s.shop.limit ? `${whole(s.shop.in_flight)} / ${whole(s.shop.limit)}` : whole(s.shop.in_flight), say("queue_n", { n: whole(s.shop.queue) })],
  latency: (s) => [s.shop.requests ? millis(s.shop.p99_ms) : "–", s.shop.requests ? say("half_within", { t: millis(s.shop.p50_ms) }) : say("no_orders")],
  redis: (s) => (s.redis ? [s.redis.calls ? millis(s.redis.p99_ms) : "–", s.redis.up ? say("calls_n", { n: rate(per(s, s.redis.calls)) }) : say("redis_away")] : [say("none"), say("stock_in_memory")]),
  unknown: (s) => [whole(s.unknown), say(s.unknown ? "unknown_look" : "unknown_none")],
};

function tellFigures(s) {
  const host = $("figures");
  for (const [id, of] of Object.entries(figures)) {
    let e = $(`figure-${id}`);
    if (!e) host.append(e = el("div", { class: "figure", id: `figure-${id}`, role: "group" }, el("span"), el("b"), el("small")));
    const [number, below] = s ? of(s) : ["–", ""];
    e.setAttribute("aria-label", say(`figure_${id}`));
    setText(e.children[0], say(`figure_${id}`));
    setText(e.children[1], number);
    setText(e.children[2], below);
    e.dataset.is = id === "unknown" && s?.unknown ? "warn" : id === "redis" && s?.redis && !s.redis.up ? "bad" : "";
  }
}

// reasonsSeen are those of the ten minutes.
function reasonsSeen() {
  const seen = new Set();
  for (const s of spread(600).places) {
    if (!s) continue;
    for (const reason of Object.keys(s.rejected)) seen.add(reason);
    for (const reason of Object.keys(s.rejected_connections)) seen.add(reason);
  }
  return stacked(seen);
}

// enforced is what would have been admitted in enforce mode.
const enforced = (s) => Math.max(0, s.admitted - sum(s.observed));

const traffic = () => [
  { key: "admitted", label: say("admitted"), colour: shade("admitted"), shape: "stack", of: (s) => per(s, enforced(s)) },
  ...(spread(600).places.some((s) => s && sum(s.observed)) ? [{
    key: "observed", label: say("would_be_rejected"), colour: paint("warn"), shape: "stack", of: (s) => per(s, s.admitted - enforced(s)),
  }] : []),
  ...reasonsSeen().map((reason) => ({
    key: reason, label: nameOf(reason), about: reason, colour: shade(reason), shape: "stack",
    of: (s) => per(s, (s.rejected[reason] || 0) + (s.rejected_connections[reason] || 0)),
  })),
];

const saturation = (of) => (s) => {
  const w = s.windows.find((one) => one.of === of);
  return w?.used ? Math.min(100, (100 * w.saturated) / w.used) : null; // the one may be counted a moment before the other
};

function charts() {
  chart($("chart-traffic"), { title: "chart_traffic", unit: "per_second", height: 300, lines: traffic });
  chart($("chart-admitted"), { title: "chart_admitted", unit: "per_second", height: 300, lines: () => [
    { key: "admitted", label: say("admitted"), colour: shade("admitted"), shape: "stack", of: (s) => per(s, s.admitted) },
    { key: "errors", label: say("shop_errors"), colour: paint("bad"), shape: "line", of: (s) => per(s, s.shop.errors) },
  ] });
  chart($("chart-inflight"), { title: "chart_inflight", unit: "requests", lines: () => [
    { key: "in", label: say("in_flight"), colour: paint("accent"), shape: "area", of: (s) => s.shop.in_flight },
    { key: "queue", label: say("queue"), colour: paint("warn"), shape: "line", of: (s) => s.shop.queue },
    { key: "limit", label: say("limit"), colour: paint("bad"), shape: "step", dash: [5, 4], of: (s) => s.shop.limit || null },
  ] });
  chart($("chart-latency"), { title: "chart_latency", unit: "milliseconds", lines: () => [
    { key: "p50", label: "p50", colour: paint("accent"), shape: "area", of: (s) => (s.shop.requests ? s.shop.p50_ms : null) },
    { key: "p99", label: "p99", colour: paint("bad"), shape: "line", dash: [4, 3], of: (s) => (s.shop.requests ? s.shop.p99_ms : null) },
  ] });
  chart($("chart-redis"), { title: "chart_redis", lines: () => (latest()?.redis ? [
    { key: "calls", label: say("calls"), colour: paint("accent"), shape: "area", of: (s) => (s.redis ? per(s, s.redis.calls) : null) },
    { key: "p50", label: "p50 ms", right: true, colour: paint("good"), shape: "line", of: (s) => (s.redis?.calls ? s.redis.p50_ms : null) },
    { key: "p99", label: "p99 ms", right: true, colour: paint("bad"), shape: "line", dash: [4, 3], of: (s) => (s.redis?.calls ? s.redis.p99_ms : null) },
  ] : []) });
  chart($("chart-windows"), { title: "chart_windows", unit: "percent_of_used", top: () => 100, format: (n) => `${short(n)} %`, lines: () => (latest()?.windows.length ? [
    { key: "all", label: say("window_all"), colour: paint("accent"), shape: "area", of: saturation("all") },
    { key: "sku", label: say("window_sku"), colour: paint("warn"), shape: "line", dash: [4, 3], of: saturation("sku") },
  ] : []) });
}

async function showTopKeys() {
  const { top_keys: topKeys } = await ask("top-keys?n=6");
  const heads = [{ text: say("limit_name") }, { text: say("client") }, { text: say("rejected"), number: true }];
  fill($("top-keys-body"), table(say("top_keys"), heads, topKeys.map((l) => [l.limit, l.key, whole(l.rejected)]), say("no_top_keys")));
}

function showHotSKUs(s) {
  const heads = [{ text: "SKU" }, { text: say("recent_requests"), number: true }, { text: say("free"), number: true }];
  fill($("hot-skus-body"), table(say("hot_skus"), heads, (s?.hot || []).map((h) => [h.sku, whole(h.requests), h.left === null ? "–" : whole(h.left)]), say("no_hot_skus")));
}

async function tellTargets() {
  const { targets } = await ask("targets");
  const heads = [{ text: say("target") }, { text: say("how") }, { text: say("in_flight"), number: true }, { text: say("open_connections"), number: true }];
  const how = (t) => el("span", { class: "chip", "data-is": t.up ? "good" : "bad" }, el("i"), say(t.up ? "up" : t.ejected ? "ejected" : "unhealthy"));
  fill($("targets-body"), table(say("targets"), heads, targets.map((t) => [t.target, how(t), whole(t.in_flight), whole(t.open)]), "", "rows"));
}

// look asks for what is in no second; only while it is visible.
function look() {
  if (!watched("live")) return;
  showTopKeys().catch(() => {}); // the stream tells that nothing comes
  tellTargets().catch(() => {});
}

export function startLive() {
  charts();
  tellFigures();
  on("second", tellFigures);
  showHotSKUs();
  on("second", showHotSKUs);
  on("language", () => { tellFigures(latest()); showHotSKUs(latest()); look(); });
  on("view", look);
  on("second", (s) => { $("chart-redis").hidden = !s.redis; });
  $("range").addEventListener("change", (e) => show(Number(e.target.value)));
  setInterval(look, 3000);
}
