// The strip at the head: live, ready, mode, and what is wrong.

import { ask } from "./api.js";
import { on, tell } from "./bus.js";
import { $, el, fill, setText } from "./dom.js";
import { about, translate } from "./findings.js";
import { age, stale, watched, why } from "./feed.js";
import { clock, span } from "./format.js";
import { latest, spread } from "./history.js";
import { away } from "./pace.js";
import { clockIs } from "./sales.js";
import { hears } from "./session.js";
import { say } from "./words.js";

let status = null, live = null, role = "";

function chip(id, is, text) {
  const e = $(id);
  e.dataset.is = is;
  setText(e.querySelector("span"), text);
}

// tellStock says how old the stock's numbers are while Redis does not answer: the gate can only repeat them.
function tellStock(s) {
  const old = away(s), known = old && spread(600).places.findLast((one) => one?.redis?.up);
  document.body.classList.toggle("away", old);
  $("stock-old").hidden = !old;
  if (old) setText($("stock-old"), `${say("redis_down")} ${known ? say("stock_old", { t: clock(known.at) }) : say("stock_older")}`);
}

const failing = 10; // seconds that the banner of a failing shop looks back

// tellShop says that the shop is down, in part or wholly, or that it fails.
function tellShop(s) {
  const banner = $("shop-down"), { up, targets } = s.shop;
  const recent = spread(failing).places, of = (count) => recent.reduce((all, one) => all + (one ? count(one.shop) : 0), 0);
  const errors = of((shop) => shop.errors), all = of((shop) => shop.requests);
  const down = targets > 0 && up === 0, fails = !down && errors >= 10 && errors * 2 > all;
  banner.hidden = !(down || fails || up < targets);
  banner.className = down || fails ? "banner bad" : "banner warn";
  if (!banner.hidden) setText(banner, down ? say("upstream_down", { n: targets }) : fails ? say("shop_failing", { errors }) : say("upstream_partly", { up, n: targets }));
}

// tick looks whether the numbers are alive.
function tick() {
  if ($("app").hidden) return;
  const old = age(), alive = old < stale;
  document.body.classList.toggle("stale", !alive);
  const lost = $("lost");
  lost.hidden = alive;
  if (!alive) setText(lost, (old === Infinity ? say("never_connected") : say("lost", { t: span(old) })) + (why() ? ` ${why()}` : ""));
  chip("connection", alive ? "good" : "bad", say(alive ? "connected" : "not_connected"));
  if (live !== null && live !== alive) tell("news", say(alive ? "news_back" : "news_lost"));
  live = alive;
}

function draw() {
  tick();
  if (!status) return;
  setText($("host"), status.host);
  setText($("instance"), say("this_instance", { host: status.host }));
  const standing = status.phase === "draining" ? "draining" : !status.ready ? "not_ready" : status.degraded ? "degraded" : "is_ready";
  chip("ready", { draining: "warn", not_ready: "bad", degraded: "warn", is_ready: "good" }[standing], say(standing));
  $("ready").title = status.checks.map((c) => `${c.ok && !c.degraded ? "✓" : "✗"} ${about(c.name)}: ${translate(c.detail)}`).join("\n");
  chip("mode", status.mode === "enforce" ? "quiet" : "warn", say(status.mode === "enforce" ? "enforces" : "observes"));
  $("observing").hidden = status.mode === "enforce";
  $("viewer-note").hidden = status.role !== "viewer";
  const fault = $("reload-fault");
  fault.hidden = status.reload.ok;
  if (!status.reload.ok) {
    fill(fault, el("b", {}, say("reload_fault")), el("ul", {}, (status.reload.problems || []).map((p) =>
      el("li", {}, el("code", {}, `${p.file}${p.line ? `:${p.line}` : ""}`), " ", p.key ? el("code", {}, p.key) : null, " ", p.message))));
  }
}

function compare(before, s) {
  if (!before) return;
  if (before.ready !== s.ready) tell("news", say(s.ready ? "is_ready" : "not_ready"));
  if (before.mode !== s.mode) tell("news", say(s.mode === "enforce" ? "enforces" : "observes"));
  if (before.reload.at !== s.reload.at) tell("news", say(s.reload.ok ? "news_reloaded" : "reload_fault"));
}

export async function look() {
  if ($("app").hidden || status && !watched()) return;
  const began = Date.now();
  try {
    const s = await ask("status");
    clockIs(s.now, began, Date.now());
    compare(status, s);
    status = s;
    hears(s.role);
    if (role !== s.role) tell("role", role = s.role);
    tell("status", s);
    draw();
  } catch (fault) {
    if (fault.status === 401) tell("shut", fault);
  }
}

// leave forgets what the gate said of itself, when its page is left.
export function leave() {
  status = live = null;
  role = "";
}

export function startStrip() {
  on("news", (text) => setText($("news"), text));
  on("second", (s) => { tick(); tellStock(s); tellShop(s); });
  on("language", () => {
    draw();
    if (latest()) { tellStock(latest()); tellShop(latest()); }
  });
  on("findings", draw);
  for (const topic of ["changed", "deed", "connected"]) on(topic, look);
  document.addEventListener("visibilitychange", look);
  setInterval(tick, 500);
  setInterval(look, 2000);
}
