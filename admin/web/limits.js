// The limits and their overrides.

import { ask, change, part } from "./api.js";
import { on } from "./bus.js";
import { action, confirm, toast } from "./dialogs.js";
import { $, el, fill, refill, setText, table } from "./dom.js";
import { watched } from "./feed.js";
import { clock, moment, rate, span, whole } from "./format.js";
import { about, translate } from "./findings.js";
import { now } from "./sales.js";
import { locale, say } from "./words.js";

let limits = [], overrides = [], status = null;

const spans = ["1m", "5m", "10m", "30m", "1h", "4h", "24h"];
const duration = () => ({ name: "for", label: say("for_how_long"), kind: "choice", value: "10m", choices: spans.map((s) => ({ value: s, text: say(`for_${s}`) })) });

// typed is what the gate takes for a value: of the kind that is in force.
function typed(text, like) {
  if (typeof like === "number") return Number(text);
  if (typeof like === "boolean") return text === "true";
  return text;
}

async function set(key, value, span) {
  const done = await change("POST", "overrides", { key, value, for: span });
  return { text: say("override_set", { key, value: String(value), at: clock(done.until) }), undo: async () => { await change("DELETE", `overrides/${part(done.id)}`); } };
}

// shown is a value as the rest of the page shows numbers: 1,578.
const shown = (value) => (typeof value === "number" ? value.toLocaleString(locale()) : String(value));

function changeNumber(limit, n) {
  const number = typeof n.in_force === "number";
  confirm({
    title: say("change_title", { key: n.key }), text: say("change_text", { now: shown(n.in_force), file: shown(n.configured) }), button: say("change"),
    fields: [{ name: "value", label: say("new_value"), kind: number ? "number" : "text", value: n.in_force, min: number ? 0 : null, hint: number ? "" : say("with_unit") }, duration()],
    preview: ({ value }) => (String(value) === String(n.in_force) ? { text: say("in_force_already"), ok: false } : { text: "", ok: true }),
    act: ({ value, for: span }) => set(n.key, typed(value, n.in_force), span),
  });
}

function changeEnforce(limit) {
  const to = limit.observe_only;
  confirm({
    title: say(to ? "enforce_title" : "observe_title", { limit: limit.name }), text: say(to ? "enforce_text" : "observe_text"), button: say(to ? "enforce" : "observe"), danger: !to,
    fields: [duration()], act: ({ for: span }) => set(`limits.observe_only[${limit.name}]`, !to, span),
  });
}

function changeMode() {
  const to = status.mode === "observe" ? "enforce" : "observe";
  confirm({
    title: say(`mode_${to}_title`), text: say(`mode_${to}_text`), button: say(to), danger: to === "observe", fields: [duration()],
    act: ({ for: span }) => set("mode", to, span),
  });
}

function reload() {
  confirm({
    title: say("reload_title"), text: say("reload_text"), button: say("reload"),
    fields: overrides.length ? [{ name: "overrides", label: say("reload_overrides"), kind: "choice", value: "keep", choices: [{ value: "keep", text: say("keep_them") }, { value: "drop", text: say("drop_them") }] }] : [],
    act: async (values) => {
      const done = await change("POST", "reload", { overrides: values.overrides || "keep" });
      return { text: [say("reloaded", { config: done.config, n: done.changed.length }), ...done.warnings].join(" ") };
    },
  });
}

function drawLimits() {
  const heads = [say("key"), say("in_force"), say("in_file"), ""].map((text, i) => el("th", { scope: "col", class: i === 1 || i === 2 ? "number" : "" }, text));
  if (!limits.length) return fill($("limits-body"), el("p", { class: "empty" }, say("nothing_yet")));
  refill($("limits-body"), el("table", {}, el("caption", { class: "unseen" }, say("limits")), el("thead", {}, el("tr", {}, heads)), limits.map(group)));
}

// group is one limit: what it does, and its numbers.
function group(l) {
  const did = l.observe_only ? say("observed_so", { ps: rate(l.observed_per_second), all: whole(l.observed) }) : say("rejected_so", { ps: rate(l.rejected_per_second), all: whole(l.rejected) });
  const turn = action(say(l.observe_only ? "enforce" : "observe"), () => changeEnforce(l), { label: `${say(l.observe_only ? "enforce" : "observe")}: ${l.name}`, disabled: status?.mode === "observe" });
  const how = el("span", { class: "chip", "data-is": l.observe_only ? "warn" : "good" }, el("i"), el("span", {}, say(l.observe_only ? "observed_only" : "enforced")));
  return el("tbody", {}, el("tr", { class: "of-limit" }, el("th", { scope: "rowgroup", colSpan: 4 }, el("div", {}, el("b", {}, l.name), how, el("small", {}, did), turn))),
    l.numbers.map((n) => el("tr", {}, el("th", { scope: "row" }, el("code", { title: n.key }, n.key.slice(n.key.lastIndexOf(".") + 1))),
      el("td", { class: "number" }, n.override ? el("span", { class: "chip", "data-is": "warn" }, el("i"), el("span", {}, `${say("override")} ${n.override}`)) : null, " ", shown(n.in_force)),
      el("td", { class: "number" }, n.configured === null ? "–" : shown(n.configured)),
      el("td", {}, changeable(n.key) ? el("div", { class: "actions" }, action(say("change"), () => changeNumber(l, n), { label: `${say("change")}: ${n.key}` })) : null))));
}

const changeable = (key) => key !== "limits.window.size";

function drawGate() {
  if (!status) return;
  const facts = [[say("version"), status.version], [say("host"), status.host], [say("since"), moment(status.started)], [say("config"), status.config],
    [say("last_reload"), `${moment(status.reload.at)} – ${say(status.reload.ok ? "good" : "rejected_file")}`]];
  refill($("gate-body"), el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("h3", {}, say("checks")), el("ul", { class: "checks" }, status.checks.map((c) => el("li", { "data-is": !c.ok ? "fail" : c.degraded ? "warn" : "ok" }, el("b", {}, about(c.name)), " ", translate(c.detail)))),
    el("div", { class: "actions" }, action(say(status.mode === "observe" ? "enforce" : "observe"), changeMode, { danger: status.mode !== "observe", label: `${say("mode")}: ${say(status.mode === "observe" ? "enforce" : "observe")}` }), action(say("reload"), reload)));
}

const fullOf = (o) => o.key || `SKU ${o.sku}`;

function drawOverrides() {
  const rows = overrides.map((o) => [
    el("code", {}, fullOf(o)), String(o.value), String(o.before), el("span", { class: "remains", "data-until": o.until }), o.who || "–",
    el("div", { class: "actions" },
      action(say("undo"), () => confirm({
        title: say("undo_title", { key: fullOf(o) }), text: say("undo_text", { before: String(o.before) }), button: say("undo"),
        act: async () => { await change("DELETE", `overrides/${part(o.id)}`); return { text: say("undone") }; },
      }), { label: `${say("undo")}: ${fullOf(o)}` }),
      o.toml ? el("button", { type: "button", "aria-label": `${say("copy_toml")}: ${fullOf(o)}`, onclick: () => copy(o.toml) }, say("copy_toml")) : null),
    o.fault ? el("span", { class: "fault" }, o.fault) : "",
  ]);
  const heads = [say("override_key"), say("in_force"), say("before_it"), say("remains"), say("who"), "", ""].map((text) => ({ text }));
  refill($("overrides-body"), table(say("overrides"), heads, rows, say("no_overrides"), "rows"));
  tick();
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(say("copied"));
  } catch {
    toast(text); // outside of https no clipboard: then it can be marked
  }
}

function tick() {
  for (const e of document.querySelectorAll("[data-until]")) setText(e, span(Date.parse(e.dataset.until) - now()));
}

async function look() {
  if (!watched("control")) return;
  try {
    limits = (await ask("limits")).limits;
    drawLimits();
  } catch { /* the stream tells that nothing comes */ }
}

export function startLimits() {
  on("status", (s) => {
    const before = JSON.stringify([status?.reload, status?.mode, status?.checks, status?.config, status?.started, status?.role]);
    status = s;
    if (before !== JSON.stringify([s.reload, s.mode, s.checks, s.config, s.started, s.role])) drawGate();
    if (JSON.stringify(s.overrides) !== JSON.stringify(overrides)) {
      overrides = s.overrides;
      drawOverrides();
      look();
    }
  });
  on("language", () => { drawGate(); drawLimits(); drawOverrides(); });
  on("findings", drawGate);
  on("role", () => { drawGate(); drawLimits(); drawOverrides(); });
  for (const topic of ["view", "connected"]) on(topic, look);
  on("changed", look);
  setInterval(look, 3000);
  setInterval(tick, 1000);
}

