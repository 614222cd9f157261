// Before anything is drawn: the colours that were chosen on this machine, or else the system's.
(() => {
  let theme = null;
  try { theme = localStorage.getItem("sluice.theme"); } catch { /* a browser that keeps nothing */ }
  if (theme !== "light" && theme !== "dark") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
})();
