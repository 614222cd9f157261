// How long ago something was. The wall clock may be set back, and the steady one stands still while a machine sleeps: the larger is true.

export function stopwatch(wall = () => Date.now(), steady = () => performance.now()) {
  let began = null;
  return {
    start() { began = { wall: wall(), steady: steady() }; },
    clear() { began = null; },
    read: () => (began ? Math.max(wall() - began.wall, steady() - began.steady) : Infinity), // ms; Infinity = never
  };
}
