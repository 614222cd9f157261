// What adds to a stock must not do so twice, when an answer is lost and the operator presses again.

// additions names those of one dialog: the same number has the same name, however often it is sent.
export function additions() {
  const dialog = crypto.getRandomValues(new Uint32Array(3)).join("-");
  return (units) => ({ "Idempotency-Key": `dashboard-${dialog}-${units}` });
}
