// As an operator from a fresh clone: sluice demo --keep, the printed link, and a sale from before its start to its report. With
// SLUICE_IMAGES it leaves a picture of the sale there.
import { mkdirSync, readFileSync } from "node:fs";
import { above, change, live, logIn, number, view } from "./operator.mjs";
import { is, note, pause, play } from "./stage.mjs";

await play(async (visitor, stage) => {
  const v = await visitor("operator", { locale: "en", colorScheme: "light", viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true });
  const { page } = v, told = await stage(), [home, token] = told.link.split("#token=");
  const images = process.env.SLUICE_IMAGES;

  // Who has no token is asked for one; who has a wrong one is told so.
  const answer = await page.goto(home), policy = answer.headers()["content-security-policy"];
  is(`the policy is strict: ${policy}`, /default-src 'none'/.test(policy) && /script-src 'self';/.test(policy) && !/unsafe/.test(policy));
  v.expects.push(/status of 401|status 401: GET .*\/api\/v1\/status/);
  await page.locator("#login-form").waitFor();
  await logIn(v, "not-the-token");
  await page.waitForFunction(() => /token/i.test(document.querySelector("#login-error").textContent));
  v.expects.length = 0;
  is("nothing is shown to who is not let in", !await page.locator("#app").isVisible());

  // The link lets in, and its token does not stay in the address.
  await page.goto("about:blank");
  await page.goto(told.link);
  await live(v);
  is(`the address keeps the token: ${page.url()}`, !page.url().includes(token));

  // Before.
  await page.locator("#before").waitFor();
  const clock = page.locator("#countdown-clock"), first = await clock.innerText();
  await page.waitForFunction(first => document.querySelector("#countdown-clock").textContent !== first, first);
  await page.locator("#preflight-run").click();
  await page.locator("#preflight-list > li").first().waitFor();
  const checks = page.locator("#preflight-list > li"), good = page.locator("#preflight-list > li[data-is=ok]");
  const bad = page.locator("#preflight-list > li[data-is=fail]");
  is(`${await good.count()} of ${await checks.count()} checks are green: ${await checks.allInnerTexts()}`, await bad.count() === 0 && await good.count() > 3);

  // Live, from the start on; pause and resume by keyboard alone.
  await view(v, "live");
  await above(v, 1001, "sold", 0);
  const button = page.getByRole("button", { name: "Pause: demo" });
  await page.locator(".skip").focus();
  let steps = 0;
  while (!await button.evaluate(e => e === document.activeElement) && ++steps < 40) {
    await page.keyboard.press("Tab");
    const style = await page.evaluate(() => { const s = getComputedStyle(document.activeElement); return [document.activeElement.outerHTML.slice(0, 80), s.outlineStyle, s.outlineWidth]; });
    is(`the focus is seen: ${style}`, style[1] !== "none" && style[2] !== "0px" || style[0].includes("radio"));
  }
  await page.keyboard.press("Enter");
  await page.locator("#dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#dialog").waitFor({ state: "hidden" });
  is("Esc does nothing", await button.isVisible());
  await button.focus();
  await page.keyboard.press("Enter");
  for (let i = 0; i < 5 && await page.evaluate(() => document.activeElement.id !== "dialog-confirm"); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Resume: demo" }).waitFor();
  note(`paused by keyboard, ${steps} steps from the head of the page`);
  await page.waitForFunction(() => document.querySelector("#figure-admitted b").textContent === "0" &&
    document.querySelector("#sku-1001 .numbers .held dd").textContent === "0"); // what was under way has ended,
  await pause(1500); // and the page has heard of it
  const sold = await number(v, 1001, "sold");
  await pause(2500); // a unit that is sold all the same has time to be shown
  is(`while it is paused ${await number(v, 1001, "sold") - sold} units were sold`, await number(v, 1001, "sold") === sold);
  await change(v, "Resume: demo");
  await above(v, 1001, "sold", sold);

  // A limit, for a minute; what is no value is rejected where it was typed.
  await view(v, "control");
  v.expects.push(/status of 400|status 400: POST/);
  await page.getByRole("button", { name: "Change: limits.connection.request_rate" }).click();
  await page.locator("#field-value").fill("fast");
  await page.locator("#dialog-confirm").click();
  await page.waitForFunction(() => document.querySelector("#dialog-error").textContent);
  note(`a limit that is none: ${await page.locator("#dialog-error").innerText()}`);
  await page.locator("#dialog-cancel").click();
  v.expects.length = 0;
  await change(v, "Change: limits.window.max", { value: "4", for: "1m" });
  await page.locator("#overrides-body", { hasText: "limits.window.max" }).waitFor();
  await page.getByRole("button", { name: "Copy as TOML: limits.window.max" }).click();
  await page.locator("#toasts .toast", { hasText: "Copied" }).waitFor();
  const toml = await page.evaluate(() => navigator.clipboard.readText());
  is(`the clipboard has ${toml}`, toml === "[limits.window]\nmax = 4\n");
  if (!images) await change(v, "Undo: limits.window.max");
  if (!images) await page.locator("#overrides-body", { hasText: "No override" }).waitFor();

  // More units; and all are sold.
  await view(v, "live");
  const total = await number(v, 1001, "total");
  await change(v, "Restock: SKU 1001", { units: "20" });
  await above(v, 1001, "total", total);
  is(`the total is ${await number(v, 1001, "total")} after 20 more than ${total}`, await number(v, 1001, "total") === total + 20);
  if (images) {
    await page.locator("#range input[value='120']").check({ force: true });
    await above(v, 1001, "sold", total * 0.6);
    const toast = page.getByRole("button", { name: "Dismiss" });
    while (await toast.count()) await toast.first().click({ timeout: 1000 }).catch(() => {}); // it goes by itself, too
    mkdirSync(images, { recursive: true });
    await page.mouse.move(720, 899);
    await page.locator("#figures").evaluate(e => e.scrollIntoView()); // the numbers, the traffic and the burn-down
    await page.screenshot({ path: `${images}/dashboard-live.png`, animations: "disabled" });
  }
  await above(v, 1001, "sold", total - 1);
  await page.waitForFunction(() => document.querySelector("#sku-1001 .numbers .free dd").textContent === "0" && document.querySelector("#sku-1001 .numbers .held dd").textContent === "0", null, { timeout: 60_000 });

  // Afterwards: the report, on the page and as files.
  await view(v, "after");
  await page.locator("#report-verdict[data-is=ok]").waitFor();
  async function saved(form) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`#report-${form}`).click()]);
    return readFileSync(await file.path(), "utf8");
  }
  const report = JSON.parse(await saved("json")), csv = await saved("csv");
  for (const b of report.stock) {
    is(`${b.sku}: ${b.total} = ${b.held} + ${b.sold} + ${b.free}`, b.total === b.held + b.sold + b.free && b.balances && b.total === total + 20 && b.sold === b.total);
  }
  is(`the report balances: ${JSON.stringify(report).slice(0, 400)}`, report.balances && report.stock.length === 1);
  is("the table has the same", csv.includes(`stock,1001,sold,${total + 20}`) || !note(csv.slice(0, 600)));
  note(`the report: ${report.stock[0].total} = ${report.stock[0].held} held + ${report.stock[0].sold} sold + ${report.stock[0].free} free; ${report.traffic.requests} requests`);

  // Everything that was done is on record.
  await view(v, "control");
  const audit = await page.locator("#audit-body").innerText();
  for (const deed of ["Sale changed", "Override set", "Stock ledger changed", "Wrong token"]) is(`the audit has "${deed}": ${audit}`, audit.includes(deed));
});
