// How values become lines: one on top of the other, and with gaps where nothing is known.

// alone are the places of values between two gaps, which no line can show.
export function alone(line, shape) {
  if (shape === "stack") return [];
  return line.flatMap((v, i) => (v !== null && (line[i - 1] ?? null) === null && (line[i + 1] ?? null) === null ? [i] : []));
}

// stack puts each stacked line on top of those before it. A gap stays a gap.
export function stack(lines, values) {
  let below = null;
  return values.map((line, k) => {
    if (lines[k].shape !== "stack") return line;
    below = line.map((v, i) => (v === null ? null : v + (below ? below[i] : 0)));
    return below;
  });
}
