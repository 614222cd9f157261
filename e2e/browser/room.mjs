// A waiting room as people see it on a phone: docs/waiting-room.md. One has no script, the other reads Chinese.
import { readFile, writeFile } from "node:fs/promises";
import { axe, inspect } from "./eyes.mjs";
import { is, note, pause, play, wrong } from "./stage.mjs";

const phone = { width: 390, height: 844 };
const words = {
  en: { join: "Please join the line", wait: "You are waiting", called: "It is your turn", passed: "You can order now",
    over: "Sold out", early: "The sale starts in about" },
  "zh-CN": { join: "请排队等候", wait: "您正在排队", called: "轮到您了", passed: "您可以下单了", over: "商品已售罄",
    early: "分钟后开始，开始后叫号" },
};

await play(async (visitor, stage) => {
  const person = async (name, locale, more = {}) =>
    Object.assign(await visitor(name, { locale, viewport: phone, cookies: { uid: name }, expects: [/409.*order/], ...more }),
      { says: words[locale] });
  const ann = await person("ann", "en", { javaScriptEnabled: false }), ben = await person("ben", "zh-CN");
  const told = await stage();
  let least = Infinity, seen = 0;
  const heading = (v, text) => v.page.getByRole("heading", { level: 1, name: text });
  // sees waits for a page with this title, and judges it.
  async function sees(v, what) {
    await heading(v, v.says[what]).waitFor();
    for (const colorScheme of ["light", "dark"]) {
      await v.page.emulateMedia({ colorScheme });
      let found;
      for (let left = 5; !found && left > 0; left--) { // the page may reload meanwhile
        found = await v.page.evaluate(inspect, 44).catch(() => null);
      }
      for (const fault of found.faults) wrong(`${v.name}, ${what}, ${colorScheme}: ${fault}`);
      is(`${v.name}, ${what}: its language is ${found.lang}`, found.lang === (v === ann ? "en" : "zh-CN"));
      is(`${v.name}, ${what}, ${colorScheme}: the background's luminance is ${found.background}`,
        found.background > 0.5 === (colorScheme === "light"));
      least = Math.min(least, found.least);
    }
    if (v !== ann) for (const fault of await axe(v.page).catch(e => /context|navigat/.test(e) ? [] : [e])) wrong(`${v.name}, ${what}: ${fault}`);
    seen++;
  }
  async function press(v) {
    await v.page.keyboard.press("Tab");
    const focus = await v.page.evaluate(() => [document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]);
    is(`${v.name}: the focus is on ${focus}`, focus[0] === "BUTTON" && focus[1] === "solid");
    await v.page.keyboard.press("Enter");
  }

  // Before the start: the link of the product page, the button, and a page that reloads by itself.
  for (const v of [ann, ben]) {
    await v.page.goto(`${told.gate}/.sluice/room/rush/me?back=/item/1001`);
    await sees(v, "join");
    await press(v);
    await sees(v, "wait");
    await v.page.getByText(v.says.early).waitFor();
  }
  // Both have joined: the sale begins.
  const starts = Date.now() + 2000, file = await readFile(told.config, "utf8");
  await writeFile(told.config, file.replace(/^starts = .*$/m, `starts = ${new Date(starts).toISOString()}`));
  const reload = await fetch(told.admin + "/api/v1/reload", {
    method: "POST", headers: { "Content-Type": "application/json" },
  });
  is(`the start is moved: ${reload.status}`, reload.status === 200);
  // The draw: the first one of the two who is called buys, and hears so without having touched anything.
  // Who is not called waits without end. A page that reloads just then may end the waiting too early.
  const called = async v => {
    for (const end = Date.now() + 90_000; Date.now() < end; await pause(100)) {
      const found = heading(v, v.says.called).waitFor({ timeout: end - Date.now() });
      if (await found.then(() => true, () => false)) return v;
    }
    return new Promise(() => {});
  };
  const first = await Promise.race([ann, ben].map(called));
  const other = first === ann ? ben : ann;
  note(`${first.name} is called ${Date.now() - starts} ms after the start`);
  await sees(first, "called");
  await press(first);
  await sees(first, "passed");
  await first.page.locator("a[href='/item/1001']").click();
  await first.page.waitForURL(`${told.gate}/item/1001`);
  const [bought] = await Promise.all([first.page.waitForResponse(r => r.request().method() === "POST"),
    first.page.getByRole("button", { name: "Buy" }).click()]);
  is("the order with the pass is placed", bought.status() === 200);
  // The other one reads that all is sold: from the page that reloads, or, where both were called, when it is asked for
  // anew.
  const phase = async () => (await (await other.context.request.get(`${told.gate}/.sluice/room/rush`)).json()).phase;
  for (let left = 300; left > 0 && await phase() !== "over"; left--) await pause(100);
  if (await heading(other, other.says.called).isVisible()) await other.page.reload();
  await sees(other, "over");
  is(`${other.name} has nothing to press`, await other.page.getByRole("button").count() === 0);
  note(`${seen} pages, each in light and dark; the least contrast is ${least.toFixed(2)}`);
});
