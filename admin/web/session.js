// The token of this tab. It is in sessionStorage alone, which ends with the tab, and never in an address that is kept.

const tokenKey = "sluice.token", nameKey = "sluice.operator";

let token = "", name = "", role = "";

// open takes what the tab has, or a link has brought behind its #, which no server sees; the address forgets it at once.
export function open() {
  try {
    token = sessionStorage.getItem(tokenKey) || "";
    name = sessionStorage.getItem(nameKey) || "";
  } catch { /* the token is then for this page alone */ }
  const brought = /^#token=(.+)$/.exec(location.hash);
  if (brought) {
    history.replaceState(null, "", location.pathname + location.search);
    let given = brought[1];
    try { given = decodeURIComponent(given); } catch { /* as it is */ }
    remember(given, name);
  }
}

export function remember(newToken, newName) {
  token = newToken;
  name = newName;
  try {
    sessionStorage.setItem(tokenKey, token);
    sessionStorage.setItem(nameKey, name);
  } catch { /* for this page alone then */ }
}

export function forget() {
  token = role = "";
  try { sessionStorage.removeItem(tokenKey); } catch { /* there was none */ }
}

// headers prove who asks, and say whom the audit shall name.
export function headers() {
  const h = {};
  if (token) h.Authorization = `Bearer ${token}`;
  if (/^[!-~]{1,64}$/.test(name)) h["Sluice-Operator"] = name;
  return h;
}

export const hasToken = () => token !== "";
export const hears = (newRole) => { role = newRole; };
export const operates = () => role === "operator";
export const operator = () => name;
