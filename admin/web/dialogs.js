// One dialog for every change: it says what will happen, asks, does it, and says what came of it. What the gate rejects is shown in
// the dialog, which stays open.

import { APIError } from "./api.js";
import { tell } from "./bus.js";
import { $, el, fill, setText } from "./dom.js";
import { operates } from "./session.js";
import { say } from "./words.js";

let current = null;

// confirm opens the dialog. fields are {name, label, kind: "number" "text" "choice", value, choices, min, step, hint, optional}; act gets their values,
// and returns what is done, as {text, undo}; undo, if there is one, does the contrary. typed is a name that must be typed before the button
// can be pressed. preview gets the values as they change, and gives {text, ok} of what they come to.
export function confirm({ title, text, fields = [], button, danger, typed, preview, act }) {
  if (!operates()) return;
  if (typed) fields = [...fields, { name: "typed", label: say("type_name", { name: typed }), kind: "text" }];
  current = { act, fields, typed, preview };
  setText($("dialog-title"), title);
  setText($("dialog-text"), text || "");
  setText($("dialog-confirm"), button || say("confirm"));
  $("dialog-confirm").className = danger ? "main danger" : "main";
  setText($("dialog-error"), "");
  fill($("dialog-fields"), fields.map(field), preview ? el("output", { id: "dialog-preview" }) : null);
  check();
  $("dialog").showModal();
  ($("dialog-fields").querySelector("input, select") || $("dialog-cancel")).focus();
}

function field(f) {
  const id = `field-${f.name}`;
  const input = f.kind === "choice"
    ? el("select", { id }, f.choices.map((c) => el("option", { value: c.value, selected: c.value === f.value }, c.text)))
    : el("input", { id, type: f.kind === "number" ? "number" : "text", required: !f.optional, autocomplete: "off", value: f.value ?? "", min: f.min, step: f.kind === "number" ? f.step || "any" : null });
  return el("p", { class: "field" }, el("label", { htmlFor: id }, f.label), input, f.hint ? el("small", {}, f.hint) : null);
}

const valuesOf = (fields) => Object.fromEntries(fields.map((f) => {
  const input = $(`field-${f.name}`);
  return [f.name, f.kind === "number" ? input.valueAsNumber : input.value.trim()];
}));

// check shows what the values come to, and lets the button be pressed if they may be confirmed.
function check() {
  if (!current || current.busy) return;
  const values = valuesOf(current.fields), told = current.preview?.(values);
  if (told) {
    setText($("dialog-preview"), told.text);
    $("dialog-preview").dataset.is = told.ok ? "" : "bad";
  }
  $("dialog-confirm").disabled = told?.ok === false || (current.typed !== undefined && values.typed !== current.typed);
}

// done acts. Its result is told also when another dialog is open by then.
async function done(event) {
  event.preventDefault();
  const asked = current, { act, fields } = asked;
  const values = valuesOf(fields);
  const here = () => current === asked && $("dialog").open;
  asked.busy = $("dialog-confirm").disabled = true;
  setText($("dialog-error"), "");
  try {
    const result = await act(values);
    if (here()) $("dialog").close();
    toast(result.text, result.undo);
  } catch (fault) {
    if (here()) setText($("dialog-error"), told(fault));
    else toast(told(fault), null, true);
  }
  asked.busy = false;
  if (current === asked) check();
  tell("changed");
}

// told is a fault in words.
export function told(fault) {
  if (!(fault instanceof APIError)) {
    console.error(fault);
    return String(fault);
  }
  if (fault.status === 0) return say("no_answer", { why: fault.message });
  return [fault.message, ...fault.problems.map((p) => `${p.file}:${p.line || ""} ${p.key || ""}: ${p.message}`)].join("\n");
}

// toast says what was done, with a way back for a while.
export function toast(text, undo, bad) {
  const t = el("div", { class: "toast", "data-is": bad ? "bad" : "good" }, el("span", {}, text));
  const away = setTimeout(() => t.remove(), undo ? 20_000 : bad ? 12_000 : 6000);
  if (undo) {
    t.append(el("button", { onclick: async () => {
      clearTimeout(away);
      t.remove();
      try {
        toast((await undo()) || say("undone"));
      } catch (fault) {
        toast(told(fault), null, true);
      }
      tell("changed");
    } }, say("undo")));
  }
  t.append(el("button", { class: "quiet", "aria-label": say("dismiss"), onclick: () => t.remove() }, "×"));
  $("toasts").append(t);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
}

// action is a button that only an operator can press; a viewer is told why.
export function action(text, press, { danger, label, disabled } = {}) {
  return el("button", { type: "button", class: danger ? "danger" : "", disabled: disabled || !operates(), title: operates() ? null : say("viewer_why"),
    "aria-label": label, onclick: press }, text);
}

export function startDialogs() {
  $("dialog-form").addEventListener("submit", done);
  $("dialog-form").addEventListener("input", check);
  $("dialog-cancel").addEventListener("click", () => $("dialog").close());
}
