// The pages of refusals, as people see them who have no script, another language, a dark room, a small screen, a keyboard:
// docs/pages.md.
import { inspect } from "./eyes.mjs";
import { is, note, play, wrong } from "./stage.mjs";

// How each class is met, and what its page says: first that nothing was ordered, where the gate knows it (none). Once a sale
// has begun it may not: an order may be there of which the shopper never heard.
const none = /^(Your order was not placed and you were not charged\.|您没有下单成功，也没有被扣款。)$/;
const classes = [
  { name: "not_started", sku: "later", status: 403, en: "The sale has not started", zh: "活动尚未开始", none: true, waits: true },
  { name: "ended", sku: "over", status: 403, en: "The sale is over", zh: "活动已结束" },
  { name: "paused", sku: "held", status: 503, en: "The sale is paused", zh: "活动暂停中", waits: true },
  { name: "sold_out", sku: "gone", status: 409, en: "Sold out", zh: "已售罄", none: true },
  { name: "unknown_sku", sku: "nothing", status: 404, en: "No such item on sale", zh: "没有这件商品", none: true },
  { name: "duplicate", sku: "one", status: 409, en: "You have bought this already", zh: "您已经购买过了", twice: true },
  { name: "bad_request", sku: "one", status: 400, en: "lacks what it needs", zh: "缺少必要的信息", none: true, nobody: true },
  { name: "denied", sku: "one", status: 403, en: "Access denied", zh: "访问被拒绝", none: true, from: "192.0.2.1" },
  { name: "shop", sku: "broken", status: 502, en: "no usable answer", zh: "没有给出有效的答复" },
  { name: "unavailable", sku: "one", status: 503, en: "shop cannot be reached", zh: "商店暂时无法访问", none: true, deserted: true, waits: true },
  { name: "busy", path: "/item/slow", status: 429, en: "Too many requests", zh: "请求过于频繁", none: true, twice: true, waits: true },
];

await play(async (visitor, stage) => {
  const told = await stage();
  let least = Infinity, seen = 0, number = 0;
  // meet makes a visitor meet one class as somebody new, and leaves the page open.
  async function meet(v, c) {
    const { page, context } = v, gate = c.deserted ? told.deserted : told.gate, name = `${v.name}, ${c.name}`;
    v.expects.splice(0, 1, new RegExp(`status of ${c.status}|status ${c.status}: (POST|GET)`));
    await context.clearCookies();
    if (!c.nobody) await context.addCookies([{ name: "uid", value: `${c.name}-${++number}`, url: gate }]);
    await page.setExtraHTTPHeaders({ "X-Forwarded-For": c.from || `203.0.113.${++number}` });
    for (let n = c.twice ? 2 : 1; n > 0; n--) {
      if (c.path) {
        await page.goto(gate + c.path);
        continue;
      }
      // Where even the shop's page is refused, it was loaded before.
      if (c.deserted || c.from) await page.setContent(`<form action="${gate}/api/seckill/${c.sku}/order" method="post"><button>Buy</button></form>`);
      else await page.goto(`${gate}/item/${c.sku}`);
      v.requests.length = 0;
      const answered = page.waitForResponse(r => r.request().method() === "POST");
      await page.getByRole("button").click();
      await page.waitForLoadState();
      const status = (await answered).status();
      if (n === 1) is(`${name}: status ${status}`, status === c.status);
    }
    return name;
  }
  for (const lang of ["zh-CN", "en"]) {
    const v = await visitor(lang, { locale: lang, javaScriptEnabled: false, viewport: { width: 320, height: 640 } }), { page } = v;
    for (const c of classes) {
      const name = await meet(v, c);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        const found = await page.evaluate(inspect, 44);
        for (const fault of found.faults) wrong(`${name}, ${colorScheme}: ${fault}`);
        is(`${name}, ${colorScheme}: the background's luminance is ${found.background}`, found.background > 0.5 === (colorScheme === "light"));
        is(`${name}: its language is ${found.lang}`, found.lang === lang);
        least = Math.min(least, found.least);
      }
      const status = page.getByRole("status"), text = await status.innerText();
      is(`${name}: says ${text}`, text.includes(lang === "en" ? c.en : c.zh) && await status.count() === 1);
      if (c.none) is(`${name}: what it says first is no word of the order: ${text}`, none.test(text.split("\n")[0]));
      else is(`${name}: says that there is no order: ${text}`, !text.split("\n").some(line => none.test(line)));
      const timer = page.getByRole("timer");
      is(`${name}: ${await timer.count()} timers`, await timer.count() === (c.waits ? 1 : 0));
      if (c.waits) is(`${name}: the timer says ${await timer.innerText()}`, /\d:\d\d$/.test(await timer.innerText()));
      const others = v.requests.filter(r => !r.isNavigationRequest() && !r.url().endsWith("/favicon.ico"));
      is(`${name}: it asks for ${others.map(r => r.url())}`, others.length === 0);
      // By keyboard: the only link takes the focus, shows it, and leads back to where one came from.
      await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => [document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]);
      is(`${name}: the focus is on ${focus}`, focus[0] === "A" && focus[1] === "solid");
      if (c.sku && !c.deserted && !c.from) {
        await page.keyboard.press("Enter");
        await page.waitForURL(`${told.gate}/item/${c.sku}`);
      }
      seen++;
    }
  }
  note(`${seen} pages, each in light and dark; the least contrast is ${least.toFixed(2)}`);
  // With a script the pages that wait count.
  const v = await visitor("scripted", { locale: "en" });
  for (const c of classes.filter(c => c.waits)) {
    await meet(v, c);
    const before = await v.page.getByRole("timer").innerText();
    await v.page.waitForFunction(before => document.querySelector("[role=timer]").innerText !== before, before);
  }
});
