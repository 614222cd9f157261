// What an operator does at the dashboard, by the names that docs/api.md promises to tests.
import { mkdirSync } from "node:fs";
import { axe, inspect } from "./eyes.mjs";
import { is, wrong } from "./stage.mjs";

export const view = async ({ page }, name) => {
  await page.locator(`#views a[href="#${name}"]`).click();
  await page.locator(`#${name}`).waitFor();
};

// logIn types the token, as an operator without a link does.
export async function logIn({ page }, token, name = "") {
  await page.locator("#token").fill(token);
  await page.locator("#operator").fill(name);
  await page.locator("#token").press("Enter");
}

// live waits until the numbers are those of now.
export const live = ({ page }) => page.locator("#connection[data-is=good]").waitFor();

// change presses a button, fills in its dialog, confirms, and wants to be told that it was done.
export async function change({ page }, button, fields = {}) {
  await page.getByRole("button", { name: button, exact: true }).click();
  for (const [name, value] of Object.entries(fields)) {
    const field = page.locator(`#field-${name}`);
    if (await field.evaluate(e => e.tagName === "SELECT")) await field.selectOption(value);
    else await field.fill(value);
  }
  await page.locator("#dialog-confirm").click();
  await page.locator("#dialog").waitFor({ state: "hidden" });
  const toast = page.locator("#toasts .toast").last();
  await toast.waitFor();
  return toast;
}

// sold is how many units of a SKU are, as its card says.
export const number = async ({ page }, sku, what) => Number((await page.locator(`#sku-${sku} .numbers .${what} dd`).innerText()).replace(/\D/g, ""));

// rises waits until a number of a SKU is above one.
export const above = ({ page }, sku, what, than) => page.waitForFunction(([sku, what, than]) =>
  Number(document.querySelector(`#sku-${sku} .numbers .${what} dd`)?.textContent.replace(/\D/g, "")) > than, [sku, what, than], { timeout: 60_000 });

const sizes = [{ width: 390, height: 844, target: 44 }, { width: 1440, height: 900, target: 24 }];

// looks judges every view on a narrow and a wide screen, in light and dark, in both languages, and leaves the page as it was.
// SLUICE_LOOKS names a folder for a picture of each.
export async function looks(v) {
  let least = Infinity;
  for (const { target, ...size } of sizes) {
    await v.page.setViewportSize(size);
    least = Math.min(least, await looksAt(v, size.width, target));
  }
  return least;
}

async function looksAt(v, width, target) {
  let least = Infinity;
  for (const language of ["zh", "en"]) {
    await v.page.locator("#language").selectOption(language);
    await v.page.locator(`html[lang^=${language}]`).waitFor();
    for (const theme of ["dark", "light"]) {
      await v.page.locator("#theme").selectOption(theme);
      for (const name of ["before", "live", "control", "after"]) {
        await view(v, name);
        const found = await v.page.evaluate(inspect, target);
        // axe takes a second of the processor, and sees the same elements in each theme and language.
        const faults = [...found.faults, ...theme === "light" && language === "en" ? await axe(v.page) : []];
        for (const fault of faults) wrong(`${v.name}: #${name}, ${width} px, ${theme}, ${language}: ${fault}`);
        if (process.env.SLUICE_LOOKS) {
          mkdirSync(process.env.SLUICE_LOOKS, { recursive: true });
          await v.page.screenshot({ path: `${process.env.SLUICE_LOOKS}/${name}-${width}-${theme}-${language}.png`, fullPage: true, animations: "disabled" });
        }
        is(`${v.name}: #${name}, ${theme}: the background's luminance is ${found.background}`, found.background > 0.5 === (theme === "light"));
        await v.page.waitForFunction(([name, zh]) => /\p{Script=Han}/u.test(document.getElementById(name).innerText) === zh, [name, language === "zh"])
          .catch(async () => is(`${v.name}: #${name}: there are words in ${language === "zh" ? "English alone" : "Chinese"}: ${await v.page.locator(`#${name}`).innerText()}`, false));
        least = Math.min(least, found.least);
      }
    }
  }
  return least;
}
