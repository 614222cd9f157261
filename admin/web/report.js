// After the sale: the stock ledger, which must balance, and the requests by result.

import { ask, open, part } from "./api.js";
import { on } from "./bus.js";
import { toast, told as inWords } from "./dialogs.js";
import { $, el, fill, scrollable, setText, table } from "./dom.js";
import { watched } from "./feed.js";
import { clock, millis, moment, percent, rate, whole } from "./format.js";
import { nameOf, shade } from "./reasons.js";
import { all as sales } from "./sales.js";
import { paint } from "./theme.js";
import { say } from "./words.js";

let told = null, fault = "";
let skus = []; // that a report of everything has named

const mostSKUs = 100; // to choose from

const query = (form) => {
  const chosen = $("report-sale").selectedOptions[0], of = chosen?.value ? `${chosen.dataset.of}=${part(chosen.value)}&` : "";
  return `report?${of}${form ? `format=${form}` : ""}`.replace(/[?&]$/, "");
};

function drawSales() {
  const before = $("report-sale").selectedOptions[0];
  const of = (kind, names) => (names.length ? el("optgroup", { label: say(kind) }, names.map((name) =>
    el("option", { value: name, "data-of": kind, selected: before?.dataset.of === kind && before.value === name }, name))) : null);
  fill($("report-sale"), el("option", { value: "" }, say("everything")), of("sale", sales().map((s) => s.name)), of("sku", skus));
}

const scroll = (child) => {
  const e = el("div", { class: "scroll" }, child);
  scrollable(e);
  return e;
};

const facts = (rows) => el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

function books() {
  const heads = [{ text: "SKU" }, ...["total", "held", "sold", "free"].map((n) => ({ text: say(n), number: true })), { text: say("balance") }, { text: say("first_sold") }, { text: say("sold_out_at") }];
  const rows = told.stock.map((s) => [s.sku, ...[s.total, s.held, s.sold, s.free].map(whole),
    el("span", { class: "chip", "data-is": s.balances ? "good" : "bad" }, el("i"), el("span", {}, s.balances ? `${whole(s.total)} = ${whole(s.held)} + ${whole(s.sold)} + ${whole(s.free)}` : s.fault)),
    s.first_sold ? moment(s.first_sold) : "–", s.sold_out ? moment(s.sold_out) : "–"]);
  return table(say("books"), heads, rows, say("no_ledgers"), "rows");
}

// notCounted are the SKUs whose units the shop or its script takes.
function notCounted() {
  const rows = told.not_counted.map((s) => [s.sku, whole(s.left)]);
  return table(say("not_counted"), [{ text: "SKU" }, { text: say("free"), number: true }], rows);
}

// would is how many were let through that enforcing would have rejected; they are admitted, too.
const would = () => Object.values(told.traffic.observed).reduce((all, n) => all + n, 0);

function rejections() {
  const t = told.traffic, max = Math.max(t.admitted, ...Object.values(t.rejected), 1);
  const bar = (n, colour) => { const i = el("i", { class: "bar-of" }); i.style.width = `${(100 * n) / max}%`; i.style.background = colour; return i; };
  const rows = [["admitted", t.admitted, say("admitted")], ...(would() ? [["observed", would(), say("would_be_rejected")]] : []), ...Object.entries(t.rejected).sort((a, b) => b[1] - a[1]).map(([r, n]) => [r, n, nameOf(r)])]
    .map(([r, n, name]) => [[name, r === "admitted" || r === "observed" ? "" : el("code", {}, ` ${r}`)], whole(n), percent(n, t.requests), bar(n, r === "observed" ? paint("warn") : shade(r))]);
  return table(say("by_reason"), [{ text: say("reason") }, { text: say("requests"), number: true }, { text: "%", number: true }, { text: "" }], rows);
}

function peaks() {
  const p = told.traffic.peaks, rows = [];
  const row = (name, peak, text) => { if (peak?.value) rows.push([say(name), text(peak.value), clock(peak.at)]); };
  row("peak_requests", p.requests, (n) => say("n_ps", { n: rate(n) }));
  row("peak_admitted", p.admitted, (n) => say("n_ps", { n: rate(n) }));
  row("peak_rejected", p.rejected, (n) => say("n_ps", { n: rate(n) }));
  row("peak_in_flight", p.in_flight, whole);
  row("peak_queue", p.queue, whole);
  row("peak_shop", p.shop_p99_ms, millis);
  row("peak_redis", p.redis_p99_ms, millis);
  return table(say("peaks"), [{ text: say("peak") }, { text: say("value"), number: true }, { text: say("time") }], rows, say("nothing_yet"));
}

function draw() {
  drawSales();
  const verdict = $("report-verdict");
  if (!told) {
    setText(verdict, fault || say("nothing_yet"));
    verdict.dataset.is = fault ? "fail" : "";
    return fill($("report-body"));
  }
  setText(verdict, say(!told.stock.length ? (told.not_counted.length ? "report_not_counted" : "report_no_books") : !told.balances ? "report_broken" : told.more ? "report_more" : told.stock.every((s) => s.counted) ? "report_balances" : "report_sums"));
  verdict.dataset.is = !told.stock.length || (told.more && told.balances) ? "" : told.balances ? "ok" : "fail";
  const t = told.traffic;
  fill($("report-body"),
    facts([[say("report_made"), moment(told.at)], [say("report_from"), moment(told.from)], [say("report_to"), moment(told.to)], [say("host"), told.host], [say("version"), told.version], [say("config"), told.config],
      [say("report_of"), told.sale ? `${told.sale.name} – ${say(`sale_${told.sale.state}`)}` : say("everything")]]),
    el("h3", {}, say("books")), scroll(books()),
    told.not_counted.length ? el("h3", {}, say("not_counted")) : null, told.not_counted.length ? scroll(notCounted()) : null,
    el("h3", {}, say("requests")), facts([[say("requests"), whole(t.requests)], [say("admitted"), whole(t.admitted)], [say("rejected"), whole(t.requests - t.admitted)], ...(would() ? [[say("would_be_rejected"), whole(would())]] : []),
      [say("shop_errors"), whole(t.shop_errors)], [say("figure_unknown"), whole(told.unknown)]]),
    el("div", { class: "pair" }, scroll(rejections()), scroll(peaks())),
    el("p", { class: "hint" }, say("report_hint")));
}

async function look() {
  if (!watched("after")) return;
  try {
    told = await ask(query());
    fault = "";
    if (!$("report-sale").value) skus = [...told.stock, ...told.not_counted].slice(0, mostSKUs).map((s) => s.sku);
  } catch (caught) {
    told = null;
    fault = caught.message;
  }
  draw();
}

// save gives the browser a file.
async function save(form) {
  try {
    const answer = await open("GET", query(form));
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "")?.[1] || `sluice-report.${form}`;
    const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (fault) {
    toast(inWords(fault), null, true);
  }
}

export function startReport() {
  $("report-refresh").addEventListener("click", look);
  $("report-sale").addEventListener("change", look);
  $("report-json").addEventListener("click", () => save("json"));
  $("report-csv").addEventListener("click", () => save("csv"));
  $("report-print").addEventListener("click", () => print());
  for (const topic of ["view", "changed", "connected"]) on(topic, look);
  on("sales", drawSales);
  on("language", draw);
}
