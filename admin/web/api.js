// The control API, /api/v1. What it rejects is an APIError, with the reason and the way out in its own words.

import { translate } from "./findings.js";
import { headers } from "./session.js";

export class APIError extends Error {
  constructor(status, detail, { problems, wait } = {}) {
    super(detail);
    this.status = status; // 0 = there was no answer
    this.problems = problems || [];
    this.wait = wait || 0; // seconds
  }
}

const patience = 20_000; // ms

// open asks, and gives the answer itself.
export async function open(method, path, { body, extra, signal } = {}) {
  const h = { ...headers(), ...extra };
  if (body !== undefined) h["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`api/v1/${path}`, {
      method, headers: h, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", credentials: "omit",
      redirect: "error", signal: signal || AbortSignal.timeout(patience),
    });
  } catch (fault) {
    throw new APIError(0, String(fault.message || fault));
  }
  if (answer.ok) return answer;
  let told = {};
  try { told = await answer.json(); } catch { /* a proxy in between has answered */ }
  throw new APIError(answer.status, told.detail ? translate(told.detail) : `${answer.status} ${answer.statusText}`,
    { problems: told.problems, wait: Number(answer.headers.get("Retry-After")) || 0 });
}

export const ask = async (path, options) => (await open("GET", path, options)).json();

export const change = async (method, path, body, extra) => (await open(method, path, { body, extra })).json();

export const part = encodeURIComponent;
