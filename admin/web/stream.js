// Server-Sent Events out of a fetch: EventSource cannot send the header that the token goes in.

// splitter cuts text that comes in pieces into events {event, id, data}. Comments and fields without use here are dropped.
export function splitter() {
  let rest = "";
  return (piece) => {
    const text = rest + piece, half = text.endsWith("\r") ? "\r" : ""; // what follows may be the other half of a line's end
    rest = text.slice(0, text.length - half.length).replace(/\r\n?/g, "\n");
    const events = [];
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const one = { event: "message", id: "", data: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const name = line.slice(0, colon), value = line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") one.data += (one.data ? "\n" : "") + value;
        else if (name === "event" || name === "id") one[name] = value;
      }
      if (one.data) events.push(one);
    }
    rest += half;
    return events;
  };
}

// read gives each event of an answer as it comes. A stream that is silent for longer than silence (ms) has broken.
export async function* read(answer, silence, abort) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const split = splitter();
  for (;;) {
    const timer = setTimeout(abort, silence);
    let piece;
    try {
      piece = await reader.read();
    } finally {
      clearTimeout(timer);
    }
    if (piece.done) return;
    yield* split(piece.value);
  }
}
