// The dashboard of a gate with tokens, over Redis: who may look and who may act, orders that a person decides, two tabs, every view
// in both languages and themes, and what is left when the gate has gone.
import { change, live, logIn, looks, number, view } from "./operator.mjs";
import { is, note, pause, play } from "./stage.mjs";

const all = v => v.requests.filter(r => new URL(r.url()).pathname === "/api/v1/events");
const streams = v => all(v).length, open = v => all(v).filter(r => !r.failure()).length;

await play(async (visitor, stage) => {
  const options = { locale: "en", colorScheme: "light", viewport: { width: 1440, height: 900 } };
  const ada = await visitor("operator", options), vera = await visitor("viewer", options), told = await stage();
  for (const [v, token] of [[vera, told.viewer], [ada, told.operator]]) {
    await v.page.goto(told.dashboard);
    v.expects.push(/status of 401|status 401: GET .*\/api\/v1\/status/); // the page tries whether a token is asked for at all
    await v.page.locator("#login-form").waitFor();
    await logIn(v, token, v.name);
    await live(v);
    v.expects.length = 0;
  }
  // A viewer sees everything and does nothing, by the page or past it.
  await view(vera, "live");
  await vera.page.locator("#viewer-note").waitFor();
  for (const name of ["live", "control"]) {
    await view(vera, name);
    const actions = await vera.page.locator(`#${name} .actions button`).all(), open = [];
    for (const a of actions) if (await a.isEnabled()) open.push(await a.innerText());
    is(`a viewer can press ${open} of ${actions.length} in #${name}`, actions.length > 0 && open.every(text => text === "Copy as TOML"));
  }
  const past = await vera.context.request.post(told.dashboard + "api/v1/sales/rush", { data: { state: "paused" }, headers: { Authorization: `Bearer ${told.viewer}` } });
  is(`a viewer's request is answered ${past.status()}`, past.status() === 403);

  // Orders of unknown outcome: one that the shop has, one that it has not.
  await view(ada, "control");
  await ada.page.locator("#orders-state input[value=held]").check();
  // A dialog that is left with Escape while the gate thinks about it: what comes of it does not close the next one.
  const slow = "**/api/v1/reservations/**/confirm*";
  await ada.page.route(slow, async route => { await pause(1500); await route.continue(); });
  await ada.page.getByRole("button", { name: `Confirm: ${told.serials[0]}`, exact: true }).click();
  await ada.page.locator("#dialog-confirm").click();
  await ada.page.keyboard.press("Escape");
  await ada.page.locator("#dialog").waitFor({ state: "hidden" });
  await ada.page.getByRole("button", { name: `Release: ${told.serials[1]}`, exact: true }).click();
  await ada.page.locator("#toasts .toast", { hasText: told.serials[0] }).waitFor();
  is("the next dialog stays open", await ada.page.locator("#dialog").isVisible());
  await ada.page.keyboard.press("Escape");
  await ada.page.unroute(slow);
  await ada.page.locator("#orders-body", { hasText: told.serials[0] }).waitFor({ state: "hidden" });
  for (const [op, serial] of [["Release", told.serials[1]]]) {
    const toast = await change(ada, `${op}: ${serial}`);
    is(`${op}: ${await toast.innerText()}`, (await toast.innerText()).includes(serial));
    await ada.page.locator("#orders-body", { hasText: serial }).waitFor({ state: "hidden" });
  }
  // Any order is found by its serial, and a sold one can be refunded.
  const find = ada.page.locator("#orders-serial");
  await find.fill(told.serials[1]);
  await find.press("Enter");
  await ada.page.locator("#orders-body", { hasText: "Released" }).waitFor();
  await find.fill(told.serials[0]);
  await find.press("Enter");
  await ada.page.getByRole("button", { name: `Refund: ${told.serials[0]}`, exact: true }).click();
  is("the dialog refunds", (await ada.page.locator("#dialog-text").innerText()).includes("cancelled this order"));
  await ada.page.keyboard.press("Escape");
  await find.fill("");
  await find.press("Enter");
  await ada.page.getByRole("button", { name: `Refund: ${told.serials[0]}`, exact: true }).waitFor({ state: "hidden" });
  // What a settler has told: a conflict, whose detail is text, and the button that ends it.
  await ada.page.locator("#settlement-body", { hasText: "lost" }).waitFor();
  const opened = await (await change(ada, "Open: broken")).innerText();
  is(`the SKU of a conflict is opened: ${opened}`, opened.includes("broken"));
  await view(ada, "live");
  for (const [what, want] of [["total", 5], ["held", 0], ["sold", 1], ["free", 4]]) {
    await ada.page.waitForFunction(([what, want]) => document.querySelector(`#sku-broken .numbers .${what} dd`).textContent === String(want), [what, want])
      .catch(async () => is(`${await number(ada, "broken", what)} ${what}, want ${want}`, false));
  }
  // What waits: orders that are stuck, and a room that is put on hold and goes on.
  const queue = ada.page.locator("#panel-queue"), room = ada.page.locator("#panel-room-lobby");
  await queue.locator(".chip", { hasText: "Stuck orders" }).waitFor();
  await queue.filter({ hasText: /Stuck\s*3/ }).waitFor();
  const lobby = await room.innerText(); // no person waits, and none has a share of the units
  is(`the room shows ${lobby}`, /Numbers given\s+3/.test(lobby) && !/Units per person waiting\s+\d+ %/.test(lobby));
  await change(ada, "Hold: Waiting room lobby");
  await room.locator(".chip", { hasText: "On hold" }).waitFor();
  await ada.page.locator("#toasts button", { hasText: "Undo" }).last().click();
  await room.locator(".chip", { hasText: "On hold" }).waitFor({ state: "hidden" });
  await change(ada, "Message …: Waiting room lobby", { value: "We go on at 20:30" });
  await room.getByText("We go on at 20:30").waitFor();
  await change(ada, "Message …: Waiting room lobby", { value: "" });
  await room.getByText("We go on at 20:30").waitFor({ state: "hidden" });
  await ada.page.getByRole("button", { name: "Show stuck orders: Orders that wait" }).click();
  const requeue = ada.page.getByRole("button", { name: /^Requeue: / });
  await requeue.first().waitFor();
  const serial = (await requeue.first().getAttribute("aria-label")).replace("Requeue: ", "");
  await change(ada, `Requeue: ${serial}`);
  await view(ada, "live");
  // A name that another operator chose is text.
  await ada.page.getByText(told.odd).first().waitFor();
  is("a SKU is no element", await ada.page.locator("img[src='x']").count() === 0);
  note(`the least contrast is ${(await looks(ada)).toFixed(2)}`);

  // A second tab has the numbers of the first one's stream, and carries on when that is closed.
  const second = { ...ada, name: "second tab", page: await ada.context.newPage() };
  const token = await ada.page.evaluate(() => sessionStorage.getItem("sluice.token"));
  await second.page.goto(`${told.dashboard}#token=${token}`);
  await live(second);
  await view(second, "live");
  await pause(2500); // a second stream that is opened all the same has time to come
  await live(ada);
  await live(second);
  // A tab that hears nothing for five seconds opens its own, and gives it up when it hears the first one again.
  for (const end = Date.now() + 30_000; open(ada) !== 1 && Date.now() < end;) await pause(100);
  is(`two tabs have ${open(ada)} streams`, open(ada) === 1);
  const before = streams(ada);
  await ada.page.close();
  await second.page.waitForFunction(() => !document.body.classList.contains("stale"));
  for (const end = Date.now() + 30_000; streams(ada) === before && Date.now() < end;) await pause(100);
  is("the tab that is left has a stream of its own", streams(ada) > before);
  await live(second);

  // The gate dies: nothing on the page pretends to be of now.
  ada.expects.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
  vera.expects.push(...ada.expects);
  process.kill(told.pid, "SIGKILL");
  const lost = second.page.locator("#lost");
  await lost.waitFor();
  const first = await lost.innerText();
  is(`it says ${first}`, /Connection lost.*\d+ s old/.test(first));
  await second.page.waitForFunction(first => document.querySelector("#lost").innerText !== first, first);
  is("the numbers are marked as old", await second.page.evaluate(() => document.body.classList.contains("stale")));
  note(`${first} Then: ${await lost.innerText()}`);
});
