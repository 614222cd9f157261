// The settlement, as its settlers have told last.

import { ask } from "./api.js";
import { on } from "./bus.js";
import { action } from "./dialogs.js";
import { $, el, refill, table } from "./dom.js";
import { watched } from "./feed.js";
import { whole } from "./format.js";
import { turn } from "./shelf.js";
import { say } from "./words.js";

const silent = 20_000; // ms since a settler has told anything: none runs

let told = [], fault = "";

const seconds = (n) => `${n < 10 ? n.toFixed(2) : Math.round(n)} s`;

function draw() {
  if (fault) return refill($("settlement-body"), el("p", { class: "empty" }, fault));
  const heads = [say("home"), say("database"), say("lag"), say("behind"), say("behind_since")].map((text, i) => ({ text, number: i > 1 }));
  const rows = told.map((s) => [s.home, s.age_ms > silent ? say("no_settler") : s.up ? say("answers") : s.database, seconds(s.lag_seconds), whole(s.behind), seconds(s.behind_seconds)]);
  const all = told.flatMap((s) => s.conflicts.map((c) => [
    `${s.home} ${c.id}`, c.kind, c.sku, c.detail,
    c.kind === "lost" ? action(say("open"), () => turn(c.sku, "on", "frozen"), { label: `${say("open")}: ${c.sku}` }) : c.next ? el("code", {}, c.next) : "–",
  ]));
  const more = told.reduce((n, s) => n + s.more, 0);
  refill($("settlement-body"), table(say("settlement"), heads, rows, say("no_settler"), "rows"),
    table(say("settlement"), ["", say("kind"), "SKU", "", say("way_out")].map((text) => ({ text })), all, say("no_conflicts"), "rows"),
    more ? el("p", { class: "hint" }, `+ ${more}: sluice-settle status`) : null);
}

async function look() {
  if (!watched("control")) return;
  try {
    const heard = await ask("settlement");
    $("settlement").hidden = !heard.configured;
    told = heard.settlements;
    fault = "";
  } catch (error) {
    fault = error.message;
  }
  draw();
}

export function startSettlement() {
  setInterval(look, 5000);
  for (const topic of ["view", "changed", "connected"]) on(topic, look);
  for (const topic of ["language", "role"]) on(topic, draw);
}
