// The pages of rejections, as people see them who have no script, another language, a dark room, a small screen, a
// keyboard: docs/pages.md.
import { inspect } from "./eyes.mjs";
import { is, note, play, wrong } from "./stage.mjs";

// What a page says of the order, after its title. A reserve route that
// is paused or has ended does not look up an earlier order: there a page speaks of this request alone, whether the
// schedule or the ledger rejected it.
const orders = {
  none: /^(This request placed no order, and you were not charged\.|本次请求未下单，未产生扣款。)$/,
  other: /^(This request has placed no new order\.|本次请求没有产生新的订单。)$/,
  unknown: /^(We do not know yet whether your order was placed\. .*|暂时无法确认订单是否成功。.*)$/,
};

// How each class is met, and what its page says.
const classes = [
  { name: "not_started", sku: "later", status: 403, en: "The sale has not started", zh: "活动尚未开始",
    order: "none", waits: true },
  { name: "ended", sku: "over", status: 403, en: "The sale is over", zh: "活动已结束", order: "other" },
  { name: "paused", sku: "held", status: 503, en: "The sale is paused", zh: "活动暂停中", order: "other", waits: true },
  { name: "sold_out", sku: "gone", status: 409, en: "Sold out", zh: "已售罄", order: "none" },
  { name: "unknown_sku", sku: "nothing", status: 404, en: "not part of the sale", zh: "未参加本次活动", order: "none" },
  { name: "duplicate", sku: "one", status: 409, en: "You have already bought this item", zh: "您已购买过该商品",
    order: "other", twice: true },
  { name: "bad_request", sku: "one", status: 400, en: "incomplete or invalid", zh: "不完整或有误",
    order: "none", user: "7".repeat(257) },
  { name: "unidentified", sku: "one", status: 401, en: "sign in", zh: "请先登录", order: "none", anonymous: true },
  { name: "denied", sku: "one", status: 403, en: "Access denied", zh: "访问被拒绝", order: "none", from: "192.0.2.1" },
  { name: "upstream", sku: "broken", status: 502, en: "did not respond properly", zh: "商城响应异常", order: "unknown" },
  { name: "unavailable", sku: "one", status: 503, en: "shop cannot be reached", zh: "商城暂时无法访问",
    order: "none", deserted: true, waits: true },
  { name: "busy", path: "/item/slow", status: 429, en: "Too many requests", zh: "请求过于频繁",
    order: "none", twice: true, waits: true },
];

await play(async (visitor, stage) => {
  const told = await stage();
  let least = Infinity, seen = 0, number = 0;
  // meet makes a visitor meet one class as a new user, and leaves the page open.
  async function meet(v, c) {
    const { page, context } = v, gate = c.deserted ? told.deserted : told.gate, name = `${v.name}, ${c.name}`;
    v.expects.splice(0, 1, new RegExp(`status of ${c.status}|status ${c.status}: (POST|GET)`));
    await context.clearCookies();
    if (!c.anonymous) await context.addCookies([{ name: "uid", value: c.user || `${c.name}-${++number}`, url: gate }]);
    await page.setExtraHTTPHeaders({ "X-Forwarded-For": c.from || `203.0.113.${++number}` });
    for (let n = c.twice ? 2 : 1; n > 0; n--) {
      if (c.path) {
        await page.goto(gate + c.path);
        continue;
      }
      // Where even the shop's page is rejected, it was loaded before.
      if (c.deserted || c.from) await page.setContent(`<form action="${gate}/api/seckill/${c.sku}/order" method="post"><button>Buy</button></form>`);
      else await page.goto(`${gate}/item/${c.sku}`);
      v.requests.length = 0;
      const [answer] = await Promise.all([page.waitForResponse(r => r.request().method() === "POST"), page.getByRole("button").click()]);
      await page.waitForLoadState();
      const status = answer.status();
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
      const said = text.split("\n").map(line => line.trim()).filter(Boolean);
      for (const [order, sentence] of Object.entries(orders)) {
        const at = said.findIndex(line => sentence.test(line));
        is(`${name}: says of the order, which is "${c.order}": ${text}`, order === c.order ? at >= 0 : at < 0);
        if (at >= 0) is(`${name}: the title does not come first: ${text}`, at === 1 && said[0].includes(lang === "en" ? c.en : c.zh));
      }
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
