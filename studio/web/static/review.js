"use strict";
// Convenience only: keys, counting, one example at a time on a phone, drafts. Without it every form still works.

const form = document.getElementById("answer");
const boxes = form ? [...form.querySelectorAll(".card input, .option input")] : [];
const compare = document.querySelector("main.compare");
const nameField = document.getElementById("name") ?? document.getElementById("why"); // where letters go
const minute = 60 * 1000;

function stored(area, key, value) {
  try {
    if (value === undefined) return area.getItem(key);
    area.setItem(key, value);
  } catch {
    // The browser keeps nothing for this page.
  }
  return null;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/* Shortcuts: single keys, which can be switched off */

const shortcuts = document.getElementById("shortcuts");
function keysAreOn() {
  return !shortcuts || shortcuts.checked;
}
function offerShortcuts() {
  if (!shortcuts) return;
  const show = () => document.documentElement.classList.toggle("no-keys", !shortcuts.checked);
  shortcuts.closest("label").hidden = false;
  shortcuts.checked = stored(localStorage, "shortcuts") !== "off";
  shortcuts.addEventListener("change", () => {
    stored(localStorage, "shortcuts", shortcuts.checked ? "on" : "off");
    show();
  });
  show();
}

function typing(target) {
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
}

function toggle(box) {
  box.checked = box.type === "radio" || !box.checked;
  box.dispatchEvent(new Event("change", { bubbles: true }));
  box.focus();
}

// A choice too many replaces the oldest one.
const order = boxes.filter((box) => box.checked);
let chosenByPointer = false;
function chose(box) {
  const wanted = compare ? Number(compare.dataset.choose) : 0;
  if (order.includes(box)) order.splice(order.indexOf(box), 1);
  if (box.checked) order.push(box);
  if (wanted && order.length > wanted) order.shift().checked = false;
}

function count() {
  const place = document.getElementById("count");
  if (!place) return;
  const marked = boxes.filter((box) => box.checked).length;
  place.textContent = filled(place.dataset.text, { marked, total: place.dataset.total || boxes.length });
}

function moveFocus(key) {
  const at = boxes.indexOf(document.activeElement);
  const columns = boxes.filter((box) => box.getBoundingClientRect().top === boxes[0].getBoundingClientRect().top).length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  const next = at < 0 ? 0 : at + step;
  if (boxes[next]) boxes[next].focus();
}

/* Where a name is typed, a letter never acts by itself: it goes into the name. Before anything is chosen or typed, the
   letters of the buttons move to their button, which Enter presses; whatever else follows was the start of a name. */

let begun = "";
function typeName(key) {
  const text = begun + key; // before the focus moves, which ends what was begun
  nameField.focus();
  nameField.setRangeText(text, nameField.selectionStart, nameField.selectionEnd, "end");
  nameField.dispatchEvent(new Event("input", { bubbles: true }));
}

function onNamingKey(key) {
  const box = boxes.find((one) => one.dataset.key === key);
  const button = { n: "nothing", u: "undo", s: "skip" }[key];
  const untouched = !nameField.value && !begun && !boxes.some((one) => one.checked);
  if (box && !begun && !chosenByPointer) {
    toggle(box);
  } else if (button && untouched) {
    const wanted = document.getElementById(button);
    (wanted?.querySelector("summary") || wanted)?.focus();
    begun = key;
  } else {
    typeName(key);
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const key = event.key;
  if (typing(event.target)) {
    if (key === "Escape") event.target.blur();
    return;
  }
  if (nameField && key.length === 1 && key !== " ") {
    if (!keysAreOn()) return;
    onNamingKey(key);
    event.preventDefault();
    return;
  }
  if (key.length === 1 && !keysAreOn()) return;
  const box = boxes.find((one) => one.dataset.key === key.toLowerCase());
  const cell = document.activeElement.closest(".cell");
  if (box) toggle(box);
  else if (key.startsWith("Arrow") && boxes.length) moveFocus(key);
  else if (key === "u") document.getElementById("undo")?.click();
  else if (key === "n") document.getElementById("nothing")?.click();
  else if (key === "?" && cell?.querySelector(".unsure input")) cell.querySelector(".unsure input").click();
  else if (key === "s" && document.getElementById("skip")) {
    document.getElementById("skip").open = true;
    document.getElementById("reason").focus();
  } else if (key === "Enter" && form && !event.target.closest("button, a, summary")) {
    if (nameField && !nameField.value) nameField.focus();
    else document.getElementById("save").click();
  } else return;
  event.preventDefault();
}

function onSubmit(event) {
  const sent = event.target;
  if (sent.dataset.sent) event.preventDefault();
  sent.dataset.sent = "yes";
  if (sent === form) stored(sessionStorage, draftKey, "null"); // the server has it now, and gives it back when it is undone
}

/* Drafts: what is marked and typed, and which example a phone shows, outlive a reload */

const leases = form ? [...form.querySelectorAll("[name=lease]")].map((one) => one.value).join(" ") : "";
const draftKey = "draft";
let step = 0;

function keepDraft() {
  const fields = [...form.elements].filter((one) => one.name && one.type !== "hidden" && one.type !== "submit");
  const values = fields.map((one) => (one.matches("[type=checkbox], [type=radio]") ? one.checked : one.value));
  stored(sessionStorage, draftKey, JSON.stringify({ leases, values, step, chosenByPointer }));
}

function restoreDraft() {
  if (!form) return;
  const draft = JSON.parse(stored(sessionStorage, draftKey) || "null");
  if (!draft || draft.leases !== leases || document.getElementById("problem")) return;
  const fields = [...form.elements].filter((one) => one.name && one.type !== "hidden" && one.type !== "submit");
  if (fields.length !== draft.values.length) return;
  fields.forEach((one, place) => {
    if (one.matches("[type=checkbox], [type=radio]")) one.checked = draft.values[place];
    else one.value = draft.values[place];
  });
  order.splice(0, order.length, ...boxes.filter((box) => box.checked));
  ({ step, chosenByPointer } = draft);
}

/* One example at a time, on a phone; then all of them small, to look once more and save */

function stepThrough() {
  const stepper = document.querySelector(".stepper");
  const cells = [...document.querySelectorAll(".grid .cell")];
  if (!stepper || !cells.length || !window.matchMedia("(max-width: 700px)").matches) return;
  const main = document.querySelector("main");
  stepper.hidden = false;
  const show = () => {
    const done = step >= cells.length;
    main.classList.toggle("stepping", !done);
    main.classList.toggle("checking", done);
    cells.forEach((cell, number) => cell.classList.toggle("now", number === step));
    const text = stepper.querySelector(".step");
    text.textContent = done ? "" : filled(text.dataset.text, { at: step + 1, total: cells.length });
    stepper.querySelector("[data-step=back]").disabled = step === 0;
  };
  stepper.addEventListener("click", (event) => {
    const said = event.target.dataset.step;
    if (!said) return;
    if (said !== "back") {
      cells[step].querySelector(".card input").checked = said === "yes";
      cells[step].querySelector(".unsure input").checked = said === "unsure";
    }
    step = Math.max(0, step + (said === "back" ? -1 : 1));
    count();
    show();
    keepDraft();
    if (step >= cells.length) document.getElementById("save").focus();
  });
  show();
}

/* Texts that do not fit say so, and can be shown whole */

function offerWhole() {
  for (const button of document.querySelectorAll("button.more")) {
    const text = button.closest(".cell").querySelector(".text");
    if (!text || text.scrollHeight <= text.clientHeight + 1) continue;
    button.hidden = false;
    text.classList.add("cut");
    button.addEventListener("click", () => {
      const whole = text.classList.toggle("whole");
      button.firstElementChild.textContent = whole ? button.dataset.less : button.dataset.more;
      button.setAttribute("aria-expanded", String(whole));
    });
  }
}

/* Whether somebody is here: a page at which nobody is takes no questions, and keeps none */

let active = false;
let lastActive = Date.now();
const patience = 5 * minute;

function isHere() {
  return document.visibilityState === "visible" && Date.now() - lastActive < patience;
}

async function keepLease() {
  if (!active || document.visibilityState !== "visible") return;
  active = false;
  const csrf = form.querySelector("[name=csrf]");
  if (!csrf) return;
  try {
    await fetch("/touch", { method: "POST", body: new URLSearchParams({ csrf: csrf.value }) });
  } catch {
    // The server cannot be reached: answering will say so.
  }
}

async function lookForWork() {
  try {
    const reply = await fetch("/ready", { headers: { accept: "application/json" } });
    if (reply.status === 403) location.reload();
    if (!reply.ok) return;
    const { left, state } = await reply.json();
    const changed = state !== document.querySelector("[data-idle]").dataset.idle;
    if (left > 0 ? isHere() : changed) location.replace("/");
    if (left === 0 || isHere()) return;
    const ready = document.getElementById("ready");
    const again = document.getElementById("again");
    ready.textContent = ready.dataset.text;
    again.textContent = again.dataset.ready;
    again.classList.add("primary");
  } catch {
    // The server cannot be reached: try again later.
  }
}

for (const kind of ["pointerdown", "pointermove", "keydown", "scroll", "input"]) {
  document.addEventListener(
    kind,
    () => {
      active = true;
      lastActive = Date.now();
    },
    { passive: true, capture: true },
  );
}
document.addEventListener("keydown", onKey);
document.addEventListener("focusin", (event) => {
  if (!event.target.matches("#nothing, #undo, #skip summary")) begun = "";
});
document.addEventListener("submit", onSubmit);
document.addEventListener("click", (event) => {
  if (event.detail > 0 && event.target.closest(".card, .option")) chosenByPointer = true;
});
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
form?.addEventListener("change", (event) => {
  if (event.target.closest(".card")) chose(event.target);
  count();
  keepDraft();
});
form?.addEventListener("input", keepDraft);
offerShortcuts();
restoreDraft();
count();
stepThrough();
offerWhole();
if (form) setInterval(keepLease, minute);
if (document.querySelector("[data-idle]")) setInterval(lookForWork, 700);
