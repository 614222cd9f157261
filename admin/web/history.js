// Ten minutes of seconds, the oldest first, and nothing more.

const most = 600;

let seconds = [];

export const last = () => (seconds.length ? seconds[seconds.length - 1].at : 0);
export const latest = () => seconds[seconds.length - 1];

// take adds seconds that are not known yet, each in its place, and reports whether there is a later one than before.
export function take(more) {
  const before = last(), known = new Set(seconds.map((s) => s.at));
  seconds = seconds.concat(more.filter((s) => !known.has(s.at))).sort((a, b) => a.at - b.at);
  const from = last() - most;
  seconds = seconds.filter((s) => s.at > from);
  return last() > before;
}

// grown is how much of n seconds there is to show: at first little, so that the first minute of a sale fills the chart.
export function grown(n) {
  const first = seconds.length ? seconds[0].at : 0;
  return Math.min(n, Math.max(60, last() - first + 1));
}

// spread is the last n seconds, one place each: a second without figures is null, and shows as a gap.
export function spread(n) {
  const places = new Array(n).fill(null), end = last();
  for (const s of seconds) {
    const i = n - 1 - (end - s.at);
    if (i >= 0) places[i] = s;
  }
  const at = places.map((_, i) => end - (n - 1 - i));
  // A second of a busy machine covers those before it: they are the same.
  for (let i = n - 1; i > 0; i--) {
    const s = places[i];
    if (s?.at === at[i]) for (let k = 1; k < Math.round(s.span) && i - k >= 0 && !places[i - k]; k++) places[i - k] = s;
  }
  return { at, places };
}

export const clear = () => { seconds = []; };

// per is a count of a second as a rate.
export const per = (s, n) => (s.span > 0 ? n / s.span : 0);

export const sum = (counts) => Object.values(counts).reduce((all, n) => all + n, 0);
