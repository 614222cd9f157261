// The cards of the SKUs: stock, estimate, actions.

import { ask, change, part } from "./api.js";
import { on, tell } from "./bus.js";
import { chart } from "./charts.js";
import { action, confirm } from "./dialogs.js";
import { $, el, refill, setText, visible } from "./dom.js";
import { watched } from "./feed.js";
import { rate, span, whole } from "./format.js";
import { latest, spread } from "./history.js";
import { additions } from "./once.js";
import { away, rest, stockNow, stockOf } from "./pace.js";
import { paint } from "./theme.js";
import { say } from "./words.js";

const most = 20; // cards

let kept = []; // as GET /stock tells
let status = null;
const cards = new Map(); // by SKU

function card(sku) {
  const id = `sku-${sku}`;
  const burn = el("div", { id: `burn-${sku}` });
  const parts = ["sold", "held", "free"].map((name) => el("i", { class: name }));
  const numbers = Object.fromEntries(["total", "held", "sold", "free"].map((name) => [name, el("dd")]));
  const c = {
    title: el("h3"), state: el("span", { class: "chip" }, el("i"), el("span")), big: el("b", { class: "big" }), left: el("span"),
    eta: el("p", { class: "eta" }), parts, numbers, actions: el("div", { class: "actions" }), names: {}, drawn: null, buttons: "",
  };
  c.figures = el("dl", { class: "numbers" }, Object.entries(numbers).map(([name, dd]) => el("div", { class: name }, c.names[name] = el("dt"), dd)));
  c.element = el("article", { class: "card sku", id, role: "group" }, el("header", {}, c.title, c.state),
    el("div", { class: "sku-body" }, el("div", {}, el("p", { class: "headline" }, c.big, " ", c.left),
      c.whole = el("div", { class: "whole", "aria-hidden": "true" }, parts), c.figures, c.eta, c.actions), burn));
  c.start = () => {
    c.drawn = chart(burn, { title: "chart_burn", unit: "units", height: 170, lines: () => [
      { key: "sold", label: say("sold"), colour: paint("sold"), shape: "stack", of: (s) => stockNow(s, sku)?.sold ?? null },
      { key: "held", label: say("held"), colour: paint("held"), shape: "stack", of: (s) => stockNow(s, sku)?.held ?? null },
      { key: "free", label: say("free"), colour: paint("free"), shape: "stack", of: (s) => stockNow(s, sku)?.free ?? null },
    ] });
    burn.classList.remove("card");
  };
  return c;
}

function update(c, sku, told, stock) {
  const ledger = stock && (told || stock.ledger) ? { ...stock.ledger, ...told } : told;
  setText(c.title, sku === "_other" ? say("other_skus") : `SKU ${sku}`);
  c.element.setAttribute("aria-label", visible(`SKU ${sku}`));
  const state = stock?.fault ? "unreadable" : stock?.ledger?.state || (stock ? (stock.on_sale ? "on" : "paused") : "on");
  const unknown = state === "lost" || state === "unreadable";
  const soldOut = ledger ? ledger.free <= 0 : stock && stock.left <= 0;
  const standing = state === "on" && soldOut ? "sold_out" : state;
  if (c.standing && c.standing !== standing) tell("news", say("news_sku", { sku, state: say(`stands_${standing}`) }));
  c.standing = standing;
  c.state.dataset.is = { on: "good", sold_out: "done", paused: "warn", frozen: "bad", lost: "bad", unreadable: "bad", verifying: "warn" }[standing] || "quiet";
  setText(c.state.lastChild, say(`stands_${standing}`));
  setText(c.big, unknown ? "–" : whole(ledger ? ledger.free : stock?.left ?? 0));
  setText(c.left, unknown ? "" : ledger ? say("left_of", { n: whole(ledger.total) }) : say("left"));
  c.whole.hidden = c.figures.hidden = c.eta.hidden = !ledger || unknown;
  for (const name of ["total", "held", "sold", "free"]) {
    setText(c.names[name], say(name));
    setText(c.numbers[name], ledger ? whole(ledger[name]) : "–");
  }
  if (ledger) ["sold", "held", "free"].forEach((name, i) => { c.parts[i].style.flexGrow = String(Math.max(0, ledger[name])); });
  const pace = rest(spread(60).places, sku);
  setText(c.eta, soldOut ? say("all_gone") : pace ? say("eta", { t: span(pace.ms), pace: rate(pace.pace) }) : say("no_eta"));
  const buttons = JSON.stringify([sku, state, soldOut, Boolean(stock?.ledger), say("restock")]);
  if (stock && c.buttons !== buttons) {
    c.buttons = buttons;
    refill(c.actions, actions(sku, stock, state, soldOut));
  }
}

const path = (sku) => `stock/${part(sku)}`;

// actions are the buttons of a card: the usual ones, and those that end something behind one more press.
function actions(sku, stock, state, soldOut) {
  if (stock.fault) return [el("p", {}, say("unreadable_why")), el("code", {}, stock.fault)];
  if (state === "lost") return [el("code", {}, stock.ledger.why)];
  const named = (word) => ({ label: `${say(word)}: SKU ${sku}` });
  const all = [action(say("restock"), () => restock(sku, stock), named("restock"))];
  if (!stock.ledger) return all;
  if (state === "on") all.push(action(say("pause"), () => turn(sku, "paused", state), named("pause")));
  if (["paused", "ended", "frozen"].includes(state)) all.push(action(say("open"), () => turn(sku, "on", state), named("open")));
  const rare = [];
  if (!soldOut) rare.push(action(say("mark_sold_out"), () => markSoldOut(sku), { ...named("mark_sold_out"), danger: true }));
  if (state !== "ended") rare.push(action(say("end"), () => turn(sku, "ended", state), { ...named("end"), danger: true }));
  if (rare.length) all.push(el("details", { class: "more" }, el("summary", { "aria-label": `${say("more")}: SKU ${sku}` }, say("more")), el("div", { class: "actions" }, rare)));
  return all;
}

function restock(sku, stock) {
  const once = additions();
  confirm({
    title: say("restock_title", { sku }), text: say(stock.ledger ? "restock_text" : "restock_layout"), button: say("restock"),
    fields: [{ name: "units", label: say("units_more"), kind: "number", value: 100, step: 1, hint: say("units_more_hint") }],
    preview: ({ units }) => preview(stockOf(latest(), sku) || stock.ledger, stock.left, units),
    act: async ({ units }) => {
      const add = (n) => change("POST", path(sku), { add: n }, stock.ledger ? once(n) : {}); // a shop's own key remembers nothing
      const now = await add(units);
      return { text: say("restocked", { sku, n: whole(units), left: whole(now.left) }), undo: async () => { await add(-units); } };
    },
  });
}

// preview is what a restock comes to. More than is free cannot be taken away.
function preview(ledger, left, units) {
  const free = ledger ? ledger.free : left;
  if (!Number.isInteger(units) || units === 0) return { text: "", ok: false };
  if (free + units < 0) return { text: say("restock_too_many", { n: whole(free) }), ok: false };
  const values = { free: whole(free), free_after: whole(free + units) };
  if (!ledger) return { text: say("restock_preview_layout", values), ok: true };
  return { text: say("restock_preview", { ...values, total: whole(ledger.total), total_after: whole(ledger.total + units) }), ok: true };
}

export function turn(sku, to, from) {
  confirm({
    title: say(`turn_${to}_title`, { sku }), text: say(from === "frozen" ? "turn_frozen_text" : `turn_${to}_text`), button: say({ on: "open", paused: "pause", ended: "end" }[to]), danger: to === "ended", typed: to === "ended" ? sku : undefined,
    act: async () => {
      if (from === "frozen") await change("POST", `${path(sku)}/recover`, { state: to, apply: true });
      else await change("POST", path(sku), { state: to });
      const back = from === "on" || from === "paused" ? async () => { await change("POST", path(sku), { state: from }); } : null;
      return { text: say(`turned_${to}`, { sku }), undo: back };
    },
  });
}

// markSoldOut lets nothing be free. Orders that come between the look and the change make the gate reject it: it is tried again.
function markSoldOut(sku) {
  confirm({
    title: say("mark_sold_out_title", { sku }), text: say("mark_sold_out_text"), button: say("mark_sold_out"), danger: true,
    act: async () => {
      const before = (await ask(path(sku))).ledger;
      for (let tries = 0; ; tries++) {
        const now = (await ask(path(sku))).ledger;
        try {
          await change("POST", path(sku), { set: now.held + now.sold });
          break;
        } catch (fault) {
          if (fault.status !== 409 || tries === 5) throw fault;
        }
      }
      return { text: say("marked_sold_out", { sku }), undo: async () => { await change("POST", path(sku), { set: before.total }); } };
    },
  });
}

function draw() {
  if ($("live").hidden || document.hidden) return;
  const s = latest();
  const skus = [...new Set([...(s?.stock || []).map((one) => one.sku), ...kept.map((one) => one.sku)])].slice(0, most);
  for (const [sku, c] of cards) {
    if (skus.includes(sku)) continue;
    c.drawn?.end();
    c.element.remove();
    cards.delete(sku);
  }
  $("skus").querySelector(".empty")?.remove();
  if (!skus.length) $("skus").append(el("p", { class: "empty card" }, say(away(s) ? "redis_away" : "no_skus")));
  for (const sku of skus) {
    const stock = kept.find((one) => one.sku === sku), told = stockOf(s, sku);
    let c = cards.get(sku);
    if (!c) {
      cards.set(sku, c = card(sku));
      $("skus").append(c.element);
    }
    update(c, sku, told, stock);
    if (told && !c.drawn) c.start();
  }
}

async function look() {
  if (!watched("live") || !status) return;
  if (!status.stock.length) {
    kept = []; // no stock is kept here
    return draw();
  }
  try {
    kept = (await ask(`stock?limit=${most}`)).stock;
    draw();
  } catch { /* the stream tells that nothing comes */ }
}

export function startShelf() {
  on("second", draw);
  on("status", (s) => {
    const first = !status;
    status = s;
    if (first) look();
  });
  on("language", () => { for (const c of cards.values()) c.buttons = ""; draw(); });
  on("role", () => { for (const c of cards.values()) c.buttons = ""; draw(); });
  for (const topic of ["view", "changed", "deed", "connected"]) on(topic, look);
  setInterval(look, 5000);
}
