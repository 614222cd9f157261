// A sale as its shoppers see it: docs/pages.md, examples/client.
import { readFile, rename, writeFile } from "node:fs/promises";
import { is, note, pause, play, sluice } from "./stage.mjs";

const form = v => v.page.locator("form[data-sluice-sku]");
const state = (v, ...states) => v.page.waitForFunction(
  states => states.includes(document.querySelector("form[data-sluice-sku]").dataset.state), states);

// nothing was ordered, says the page of a rejection, below its title.
async function nothing(v) {
  const said = await v.page.getByRole("status").innerText();
  is(`${v.name} reads that nothing was ordered: ${said}`, /\nThis request placed no order, and you were not charged/.test(said));
}

// opened writes down, in the page, when the button can be pressed for the first time.
function opened() {
  new MutationObserver((_, self) => {
    const form = document.querySelector("form[data-state]"), button = form && form.querySelector("button");
    if (!button || button.disabled) return;
    window.openedAt = Date.now();
    self.disconnect();
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled", "data-state"] });
}

// begins moves the start of the sale, in so many ms, at each of the gates.
async function begins(told, lead) {
  const opens = Date.now() + lead;
  for (const [i, config] of told.configs.entries()) {
    const moved = [["starts", opens], ["ends", opens + told.length]].reduce((text, [key, at]) =>
      text.replace(new RegExp(`^${key} = .*$`, "m"), `${key} = ${new Date(at).toISOString()}`), await readFile(config, "utf8"));
    await writeFile(config + ".new", moved);
    await rename(config + ".new", config);
    const answer = await fetch(`http://${told.admins[i]}/api/v1/reload`, { method: "POST", headers: { "Content-Type": "application/json" } });
    is(`the start is moved: ${answer.status}`, answer.status === 200);
  }
  return opens;
}

await play(async (visitor, stage) => {
  async function shopper(name, options = {}) {
    const v = await visitor(name, { ...options, cookies: { uid: name } });
    await v.context.addInitScript(opened);
    return v;
  }
  const ann = await shopper("ann"), ben = await shopper("ben", { expects: [/409.*order/] });
  const cleo = await shopper("cleo", { javaScriptEnabled: false, expects: [/40[39].*order/] });
  const dora = await shopper("dora", { expects: [/403.*order/] }), eve = await shopper("eve");
  const watchers = [];
  for (let i = 0; i < (process.env.SLUICE_SALE === "long" ? 8 : 1); i++) watchers.push(await shopper("watcher" + i));
  // The start is far away until all have looked at what there is before it.
  const told = await stage(), [one, other] = told.gates;
  const places = new Map([[ann, one], [ben, other], [cleo, other], [dora, one], ...watchers.map((v, i) => [v, told.gates[i % 2]])]);
  const come = Date.now();
  await Promise.all([...places].map(([v, gate]) => v.page.goto(gate + "/")));

  // Before the start.
  for (const v of [ann, ben]) {
    await state(v, "waiting");
    is(`${v.name}: the button is closed before the start`, await form(v).getByRole("button", { name: "Buy" }).isDisabled());
    const timer = form(v).getByRole("timer");
    await v.page.waitForFunction(() => /\d/.test(document.querySelector("[role=timer]").textContent));
    const look = () => timer.evaluate(e => [e.textContent, Date.now()]);
    const [first, at] = await look();
    is(`${v.name}: the timer shows ${first}, like 00:07`, /^\d\d:\d\d$/.test(first));
    const seconds = Number(first.slice(0, 2)) * 60 + Number(first.slice(3)), left = (told.opens - at) / 1e3;
    is(`${v.name}: the timer shows ${first} when ${left} s are left`, seconds > left - 3 && seconds < left + 10); // a busy browser draws late
    await v.page.waitForFunction(first => document.querySelector("[role=timer]").textContent < first, first);
  }
  // Orders before the start: by a form without a script, and by one that the page's script does not hold.
  async function early() {
    await cleo.page.getByRole("button", { name: "Buy" }).click();
    await cleo.page.getByRole("timer").waitFor();
    await nothing(cleo);
    await dora.page.evaluate(() => HTMLFormElement.prototype.submit.call(document.forms[0]));
    await dora.page.getByRole("heading", { name: "The sale has not started" }).waitFor();
  }
  await early();
  const before = await dora.page.getByRole("timer").innerText();
  await dora.page.waitForFunction(before => document.querySelector("[role=timer]").innerText !== before, before);
  note(`before the start a page counts down: "${before}", then "${await dora.page.getByRole("timer").innerText().catch(() => "gone")}"`);

  // The start is near, and yet so far that all can come again before it, however slow this machine is.
  const lead = Math.max(told.lead, 2 * (Date.now() - come)), opens = await begins(told, lead);
  await Promise.all([...places].map(([v, gate]) => v.page.goto(gate + "/")));
  for (const v of [ann, ben]) await state(v, "waiting");
  await early();
  note(`all are there ${opens - Date.now()} of ${lead} ms before the start`);

  // The start.
  const late = [];
  for (const v of [ann, ben, ...watchers]) {
    const at = await (await v.page.waitForFunction(() => window.openedAt, null, { timeout: lead + 30_000 })).jsonValue();
    late.push(at - opens);
    is(`${v.name}: the button opened ${opens - at} ms before the start`, at >= opens - 3000); // a page knows the time as well as its request was quick
  }
  note(`the buttons opened ${late.join(", ")} ms after the start, by the clock that Redis has too`);

  // One order, however often the button is pressed.
  await ann.page.evaluate(() => {
    const button = document.querySelector("button");
    for (let i = 0; i < 3; i++) { button.click(); button.form.requestSubmit(); }
  });
  await state(ann, "done");
  is("ann reads that her order is placed", /Your order is placed\./.test(await form(ann).getByRole("status").innerText()));
  const orders = ann.requests.filter(r => r.method() === "POST");
  is(`ann's browser sent ${orders.length} orders`, orders.length === 1);
  const key = await orders[0].headerValue("idempotency-key");

  // Nothing is left for the others, with a script and without. Whose page was told before by the stock cannot press.
  const button = form(ben).getByRole("button", { name: "Buy" });
  await button.click({ timeout: 3e3 }).catch(() => note("ben's page knew before he could press"));
  await state(ben, "sold_out");
  is("ben reads that it is sold out", /Sold out\. If a piece comes back/.test(await form(ben).getByRole("status").innerText()));
  is("ben cannot press", await button.isDisabled());
  // The page of who came early has gone on by itself, to where she came from, without a script as well.
  await cleo.page.waitForURL(other + "/");
  await cleo.page.getByRole("button", { name: "Buy" }).click();
  await cleo.page.getByRole("heading", { name: "Sold out" }).waitFor();
  await nothing(cleo);
  await dora.page.waitForURL(one + "/");
  await state(dora, "open", "sold_out", "ended");

  // All is sold and nothing is held. A client that stays on the page has the button again when the shop cancels.
  if (told.long) await pause(Math.max(0, opens + 30_000 - Date.now()));
  else await ben.page.reload(); // the page would look again by itself, in some seconds
  await state(ben, "ended");
  const cancelled = Date.now();
  await sluice("reservation", "refund", "--config", told.configs[0], key);
  await state(ben, "open");
  note(`ben's button opened ${Date.now() - cancelled} ms after the command that gave the unit back was begun`);
  await button.click();
  await state(ben, "done");
  const keys = new Set(await Promise.all(ben.requests.filter(r => r.method() === "POST").map(r => r.headerValue("idempotency-key"))));
  is("a new order has a new key", keys.size === ben.requests.filter(r => r.method() === "POST").length && !keys.has(key));

  // All is sold, and nothing is held: it is over.
  await eve.page.goto(one + "/");
  await state(eve, "ended");
  is("eve reads that it is over", /The sale is over\./.test(await form(eve).getByRole("status").innerText()));
  if (told.long) {
    await pause(Math.max(0, opens + told.length + 200 - Date.now()));
    await cleo.page.goto(other + "/");
    await cleo.page.getByRole("button", { name: "Buy" }).click();
    await cleo.page.getByRole("heading", { name: "The sale is over" }).waitFor();
  }
});
