// How orders get into the database, as the settlers have told last, and what an operator must look at there.

import { ask, change, part } from "./api.js";
import { on } from "./bus.js";
import { action, confirm } from "./dialogs.js";
import { $, el, refill, table } from "./dom.js";
import { watched } from "./feed.js";
import { whole } from "./format.js";
import { say } from "./words.js";

const silent = 20_000; // ms since a settler has told anything: none runs

let told = [], fault = "";

// open sells a frozen SKU again, as sluice stock thaw does.
function open(c) {
  confirm({
    title: say("thaw_title", { sku: c.sku }), text: say("thaw_text"), button: say("thaw"),
    act: async () => {
      await change("POST", `stock/${part(c.sku)}?kind=ledger`, { state: "on", reconciled: true });
      return { text: say("thawed", { sku: c.sku }) };
    },
  });
}

const seconds = (n) => `${n < 10 ? n.toFixed(2) : Math.round(n)} s`;

function draw() {
  if (fault) return refill($("settlement-body"), el("p", { class: "empty" }, fault));
  const heads = [say("home"), say("database"), say("lag"), say("behind"), say("behind_since"), say("told_ago")].map((text, i) => ({ text, number: i > 1 }));
  const rows = told.map((s) => [s.home, s.age_ms > silent ? say("no_settler") : s.up ? say("answers") : s.database, seconds(s.lag_seconds), whole(s.behind), seconds(s.behind_seconds), seconds(s.age_ms / 1000)]);
  const all = told.flatMap((s) => s.conflicts.map((c) => [
    `${s.home} ${c.id}`, say(`conflict_${c.kind}`), c.sku, c.detail,
    c.kind === "lost" ? action(say("thaw"), () => open(c), { label: `${say("thaw")}: ${c.sku}` }) : c.next ? el("code", {}, c.next) : "–",
  ]));
  const more = told.reduce((n, s) => n + s.more, 0);
  refill($("settlement-body"), table(say("settlement"), heads, rows, say("no_settler"), "rows"),
    table(say("conflicts"), [say("number"), say("conflict"), "SKU", say("detail"), say("way_out")].map((text) => ({ text })), all, say("no_conflicts"), "rows"),
    more ? el("p", { class: "hint" }, say("more_conflicts", { n: more })) : null);
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
