// The sales, by the gateway's clock.

import { ask, change, part } from "./api.js";
import { on, tell } from "./bus.js";
import { action, confirm } from "./dialogs.js";
import { $, el, fill, refill, setText } from "./dom.js";
import { watched } from "./feed.js";
import { digits, moment, span } from "./format.js";
import { say } from "./words.js";

let sales = [];
let ahead = 0; // ms by which the gate's clock is ahead of this machine's
let known = false;

export const now = () => Date.now() + ahead;
export const all = () => sales;

// clockIs takes the gate's time, which was asked for between two moments.
export function clockIs(text, began, ended) {
  const at = Date.parse(text);
  if (at) ahead = at - (began + ended) / 2;
}

// next is the sale to look at: one that is on or paused, else the earliest that waits.
export function next() {
  const by = (a, b) => Date.parse(a.starts) - Date.parse(b.starts);
  return sales.filter((s) => s.state === "on" || s.state === "paused").sort(by)[0] || sales.filter((s) => s.state === "waiting").sort(by)[0];
}

const chip = (state) => el("span", { class: "chip", "data-is": { on: "good", paused: "warn", waiting: "info", ended: "done" }[state] || "quiet" }, el("i"), el("span", {}, say(`sale_${state}`)));

function turn(sale, to) {
  const from = sale.state;
  confirm({
    title: say(`sale_${to}_title`, { sale: sale.name }), text: say(`sale_${to}_text`), button: say({ paused: "pause", on: "resume", ended: "end" }[to]), danger: to === "ended", typed: to === "ended" ? sale.name : undefined,
    act: async () => {
      await change("POST", `sales/${part(sale.name)}`, { state: to });
      const undo = to === "ended" ? null : async () => { await change("POST", `sales/${part(sale.name)}`, { state: to === "paused" ? "on" : "paused" }); };
      return { text: say(`sale_${to}_done`, { sale: sale.name }), undo: from === "ended" ? null : undo };
    },
  });
}

function row(sale) {
  const named = (word) => ({ label: `${say(word)}: ${sale.name}` });
  const buttons = [];
  if (sale.state === "on" || sale.state === "waiting") buttons.push(action(say("pause"), () => turn(sale, "paused"), named("pause")));
  if (sale.state === "paused") buttons.push(action(say("resume"), () => turn(sale, "on"), named("resume")));
  if (sale.state !== "ended") buttons.push(action(say("end"), () => turn(sale, "ended"), { ...named("end"), danger: true }));
  return el("article", { class: "card sale", id: `sale-${sale.name}`, role: "group", "aria-label": `${say("sale")} ${sale.name}` },
    el("div", {}, el("h2", {}, sale.name), chip(sale.state)), el("p", { class: "remains", "data-sale": sale.name }), el("div", { class: "actions" }, buttons));
}

function draw() {
  refill($("sales"), sales.map(row));
  tick();
}

function remains(sale) {
  const t = now();
  if (sale.state === "ended" || t >= Date.parse(sale.ends)) return say("over_since", { at: moment(sale.ends) });
  if (t < Date.parse(sale.starts)) return say("begins_in", { t: span(Date.parse(sale.starts) - t) });
  return say("ends_in", { t: span(Date.parse(sale.ends) - t) });
}

// tick tells what only the clock changes.
function tick() {
  for (const e of document.querySelectorAll("#sales .remains")) {
    const sale = sales.find((s) => s.name === e.dataset.sale);
    if (sale) setText(e, remains(sale));
  }
  const body = $("countdown-body"), sale = next();
  const key = JSON.stringify([known, sale, say("sale")]);
  if (body.dataset.of !== key) {
    body.dataset.of = key;
    if (!sale) {
      fill(body, el("p", { class: "empty" }, say(!known ? "nothing_yet" : sales.length ? "all_sales_over" : "no_sales")));
    } else {
      fill(body, el("p", { class: "sale-name" }, sale.name, " ", chip(sale.state)), el("p", { id: "countdown-clock", role: "timer" }), el("p", { class: "hint", id: "countdown-hint" }),
        el("dl", { class: "facts" }, fact(say("starts"), moment(sale.starts)), fact(say("ends"), moment(sale.ends)), fact("SKU", sale.skus.slice(0, 12).join(", ") + (sale.skus.length > 12 ? ` … (${sale.skus.length})` : ""))),
        el("p", { class: "hint" }, say("by_gate_clock"), " ", el("span", { id: "gate-clock" })));
    }
  }
  if (!sale) return;
  const t = now(), begun = t >= Date.parse(sale.starts);
  setText($("countdown-clock"), digits(Date.parse(begun ? sale.ends : sale.starts) - t));
  setText($("countdown-hint"), say(sale.state === "paused" ? "sale_paused" : begun ? "until_end" : "until_start"));
  setText($("gate-clock"), new Date(t).toLocaleTimeString([], { hour12: false }));
}

async function look() {
  if ($("app").hidden || known && !watched()) return; // at the login form there is no token to ask with
  try {
    const told = (await ask("sales")).sales, before = sales;
    known = true;
    if (JSON.stringify(told) === JSON.stringify(before)) return;
    sales = told;
    for (const s of told) {
      const was = before.find((b) => b.name === s.name);
      if (was && was.state !== s.state) tell("news", say("news_sale", { sale: s.name, state: say(`sale_${s.state}`) }));
    }
    draw();
    tell("sales", sales);
  } catch { /* the stream tells that nothing comes */ }
}

export function startSales() {
  for (const topic of ["changed", "deed", "role", "connected"]) on(topic, look);
  for (const topic of ["language", "role"]) on(topic, draw);
  setInterval(tick, 250);
  setInterval(look, 2000);
}

export const lookAtSales = look;

const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
