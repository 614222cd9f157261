// Who changed what, from where: the newest first, as it happens.

import { ask } from "./api.js";
import { on } from "./bus.js";
import { $, fill, table } from "./dom.js";
import { moment } from "./format.js";
import { has, say } from "./words.js";

const most = 100;

let deeds = [];

const text = (v) => (v === undefined || v === null ? "" : typeof v === "object" ? brief(v) : has(`state_${v}`) ? say(`state_${v}`) : String(v));

// brief is an object in a few words: a state, a ledger's numbers, or whatever else is short.
function brief(v) {
  if (typeof v.state === "string" && has(`state_${v.state}`)) return say(`state_${v.state}`);
  return Object.entries(v).filter(([, value]) => typeof value !== "object").map(([name, value]) => `${name} ${value}`).slice(0, 6).join(", ");
}

function draw() {
  const heads = [say("time"), say("what"), say("of_what"), say("change_of"), say("who"), say("from")].map((t) => ({ text: t }));
  const rows = deeds.map((d) => {
    const change = text(d.before) || text(d.after) ? `${text(d.before) || "–"} → ${text(d.after) || "–"}` : "";
    const until = d.until ? say("until_t", { t: moment(d.until) }) : "";
    return [moment(d.at), has(`deed_${d.what}`) ? say(`deed_${d.what}`) : d.what, d.object || "", [d.detail, change, until].filter(Boolean).join("; "), d.who || say(`role_${d.role}`), d.from || ""];
  });
  fill($("audit-body"), table(say("audit"), heads, rows, say("no_deeds"), "rows"));
}

async function look() {
  try {
    deeds = (await ask(`audit?limit=${most}`)).audit;
    draw();
  } catch { /* the stream tells that nothing comes */ }
}

export function startAudit() {
  on("deed", (d) => {
    if (deeds.some((one) => one.id === d.id)) return;
    deeds = [d, ...deeds].slice(0, most);
    draw();
  });
  on("language", draw);
  on("connected", look);
}
