// Before the sale: what "sluice check --online" would find, from the running gate.

import { ask } from "./api.js";
import { on } from "./bus.js";
import { $, el, fill, setText } from "./dom.js";
import { about, translate } from "./findings.js";
import { clock, moment } from "./format.js";
import { say } from "./words.js";

let told = null, fault = "", running = false, asked = false;

// local shows the times in a text as the rest of the page shows times.
const local = (text) => text.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, moment);


function draw() {
  $("preflight-run").disabled = running;
  const summary = $("preflight-summary");
  if (running) setText(summary, say("preflight_runs"));
  else if (fault) setText(summary, fault);
  else if (!told) setText(summary, say("preflight_not_yet"));
  else {
    const bad = told.findings.filter((f) => f.status === "fail").length, warned = told.findings.filter((f) => f.status === "warning").length;
    setText(summary, say(bad ? "preflight_bad" : warned ? "preflight_warned" : "preflight_good", { bad, warned, at: clock(told.at) }));
  }
  summary.dataset.is = running ? "" : fault ? "fail" : !told ? "" : told.ok ? (told.findings.some((f) => f.status === "warning") ? "warning" : "ok") : "fail";
  const rank = { fail: 0, warning: 1, ok: 2 };
  const found = told ? [...told.findings].sort((a, b) => rank[a.status] - rank[b.status]) : [];
  fill($("preflight-list"), found.map((f) => el("li", { "data-is": f.status }, el("span", { class: "mark" }, say(`result_${f.status}`)), el("b", {}, about(f.check)), el("span", {}, local(translate(f.message))))));
}

async function run() {
  if (running) return;
  running = asked = true;
  fault = "";
  draw();
  try {
    told = await ask("preflight");
  } catch (caught) {
    fault = caught.message;
  }
  running = false;
  draw();
}

export function startPreflight() {
  $("preflight-run").addEventListener("click", run);
  for (const topic of ["language", "findings"]) on(topic, draw);
  on("view", (view) => { if (view === "before" && !asked) run(); });
}
