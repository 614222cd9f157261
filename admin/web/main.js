// Starts the parts of the dashboard.

import { ask } from "./api.js";
import { startAudit } from "./audit.js";
import { on, tell } from "./bus.js";
import { startDialogs } from "./dialogs.js";
import { $, scrollable, setText } from "./dom.js";
import { start as startFeed, stop as stopFeed } from "./feed.js";
import { startFleet } from "./fleet.js";
import { clear } from "./history.js";
import { startLimits } from "./limits.js";
import { startLive } from "./live.js";
import { startOrders } from "./orders.js";
import { startPanels } from "./panels.js";
import { startPreflight } from "./preflight.js";
import { startReport } from "./report.js";
import { all as sales, lookAtSales, next, startSales } from "./sales.js";
import { forget, hasToken, hears, open as openSession, operator, remember } from "./session.js";
import { startSettlement } from "./settlement.js";
import { startShelf } from "./shelf.js";
import { leave, look as lookAtStatus, startStrip } from "./strip.js";
import { startTheme } from "./theme.js";
import { language, say, speak } from "./words.js";

const views = ["before", "live", "control", "after"];

// show brings one view up: the one behind the #, or the one that fits the phase of the sale.
function show() {
  const asked = location.hash.slice(1);
  if (asked === "content") return;
  const view = views.includes(asked) ? asked : fitting();
  for (const v of views) {
    $(v).hidden = v !== view;
    const link = document.querySelector(`#views a[href="#${v}"]`);
    if (v === view) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  tell("view", view);
}

function fitting() {
  const sale = next();
  if (sale) return sale.state === "waiting" ? "before" : "live";
  return sales().length ? "after" : "live";
}

async function enter() {
  $("login").hidden = true;
  $("app").hidden = $("state").hidden = false;
  $("logout").hidden = !hasToken();
  await lookAtStatus();
  await lookAtSales();
  show();
  startFeed();
}

function shut(text) {
  $("dialog").close(); // else nothing behind it can be reached
  stopFeed();
  clear();
  leave();
  forget();
  document.body.classList.remove("stale");
  for (const id of ["lost", "stock-old", "shop-down", "reload-fault", "observing", "fleet-differs", "logout", "state"]) $(id).hidden = true;
  $("app").hidden = true;
  $("login").hidden = false;
  $("operator").value = operator();
  $("token").value = "";
  setText($("login-error"), text);
  $("token").focus();
}

// knock tries what this tab has: where the gate asks for no token, none is asked for here.
async function knock(given) {
  try {
    hears((await ask("status")).role);
    await enter();
  } catch (fault) {
    if (fault.status === 429) shut(say("too_many_wrong", { n: fault.wait }));
    else if (fault.status === 401) shut(given ? say("wrong_token") : "");
    else shut(fault.status ? fault.message : say("no_answer", { why: fault.message }));
  }
}

async function start() {
  openSession();
  startTheme();
  startDialogs();
  await speak();
  $("language").value = language;
  $("language").addEventListener("change", () => speak($("language").value, true));
  for (const part of [startStrip, startSales, startLive, startPanels, startFleet, startShelf, startLimits, startOrders, startSettlement, startAudit, startPreflight, startReport]) part();
  document.querySelectorAll(".scroll").forEach(scrollable);
  addEventListener("hashchange", show);
  on("shut", () => { if ($("login").hidden) shut(hasToken() ? say("wrong_token") : ""); });
  $("logout").addEventListener("click", () => shut(""));
  $("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    remember($("token").value.trim(), $("operator").value.trim());
    knock(true);
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    ($("app").hidden ? $("token") : $("content")).focus();
  });
  if (!hasToken() && (await (await fetch("access.json")).json()).token) shut("");
  else await knock(hasToken());
}

start();
