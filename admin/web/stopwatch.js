// How long ago something was: the larger of the wall clock and the steady one, which stops while a machine sleeps.

export function stopwatch(wall = () => Date.now(), steady = () => performance.now()) {
  let began = null;
  return {
    start() { began = { wall: wall(), steady: steady() }; },
    clear() { began = null; },
    read: () => (began ? Math.max(wall() - began.wall, steady() - began.steady) : Infinity), // ms; Infinity = never
  };
}
