// Who wants to know, and who tells. Topics: second, seconds, deed, status, sales, stock, connection, language, theme, view, tick.

const listeners = new Map();

export function on(topic, hear) {
  if (!listeners.has(topic)) listeners.set(topic, []);
  listeners.get(topic).push(hear);
}

export function tell(topic, value) {
  for (const hear of listeners.get(topic) || []) {
    try {
      hear(value);
    } catch (fault) {
      console.error(topic, fault); // one part that fails does not stop the others
    }
  }
}
