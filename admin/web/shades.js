// The colour of each reason: fixed, so that it is known after the first sale, and each of another lightness, so that a print or an eye
// that does not tell the hues still tells the reasons. The order is that in which a chart stacks them: neighbours are far apart.

// reason: [hue, chroma, lightness in %]
export const shades = {
  admitted: [155, 0.13, 62],
  sold_out: [275, 0.05, 45],
  undecided: [300, 0.08, 60],
  window: [85, 0.14, 80],
  concurrency: [50, 0.14, 66],
  queue_timeout: [40, 0.12, 52],
  rate: [235, 0.11, 72],
  conn_rate: [250, 0.12, 56],
  conn_open: [260, 0.08, 82],
  ip_conns: [265, 0.1, 49],
  not_started: [195, 0.08, 78],
  paused: [330, 0.1, 58],
  ended: [300, 0.06, 70],
  duplicate: [310, 0.1, 47],
  confirmed: [170, 0.07, 84],
  in_progress: [320, 0.08, 63],
  key_reused: [325, 0.09, 43],
  released: [290, 0.06, 76],
  unknown_sku: [110, 0.09, 51],
  unidentified: [120, 0.1, 73],
  token: [130, 0.1, 57],
  denied: [135, 0.07, 67],
  denied_ip: [15, 0.09, 42],
  no_route: [95, 0.06, 68],
  room: [205, 0.1, 55],
  loop: [105, 0.06, 86],
  bad_request: [100, 0.08, 54],
  malformed: [70, 0.07, 77],
  ambiguous: [75, 0.09, 48],
  too_large: [65, 0.06, 71],
  too_slow: [60, 0.07, 59],
  overloaded: [45, 0.12, 46],
  client_gone: [220, 0.03, 83],
  stock_error: [20, 0.17, 61],
  upstream_busy: [22, 0.14, 69],
  no_upstream: [25, 0.19, 53],
  upstream_error: [28, 0.2, 64],
  upstream_timeout: [32, 0.16, 74],
  internal: [10, 0.2, 50],
  shutting_down: [240, 0.02, 65],
};

// shadeOf is the colour of a reason: one that is not listed has a hue that follows from its name.
export const shadeOf = (reason) => shades[reason] || [[...reason].reduce((hue, c) => (hue * 31 + c.codePointAt(0)) % 360, 0), 0.11, 60];
