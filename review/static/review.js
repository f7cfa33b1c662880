"use strict";
// Convenience only: keys, counting, one example at a time on a phone. Without it every form still works.

const form = document.getElementById("answer");
const boxes = form ? [...form.querySelectorAll(".card input, .option input")] : [];
const compare = document.querySelector("main.compare");

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
  place.textContent = `${marked} of ${boxes.length} marked`;
}

function moveFocus(key) {
  const at = boxes.indexOf(document.activeElement);
  const columns = boxes.filter((box) => box.getBoundingClientRect().top === boxes[0].getBoundingClientRect().top).length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  const next = at < 0 ? 0 : at + step;
  if (boxes[next]) boxes[next].focus();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key;
  if (typing(event.target)) {
    if (key === "Escape") event.target.blur();
    return;
  }
  const box = boxes.find((one) => one.dataset.key === key.toLowerCase());
  if (box) toggle(box);
  else if (key.startsWith("Arrow") && boxes.length) moveFocus(key);
  else if (key === "u") document.getElementById("undo")?.click();
  else if (key === "n") document.getElementById("nothing")?.click();
  else if (key === "?" && document.activeElement.closest(".cell")) document.activeElement.closest(".cell").querySelector(".unsure input").click();
  else if (key === "s" && document.getElementById("skip")) {
    document.getElementById("skip").open = true;
    document.getElementById("reason").focus();
  } else if (key === "Enter" && form && !event.target.closest("button, a, summary")) {
    const name = document.getElementById("name") ?? document.getElementById("why");
    if (name && !name.value) name.focus();
    else document.getElementById("save").click();
  } else return;
  event.preventDefault();
}

function onSubmit(event) {
  const sent = event.target;
  if (sent.dataset.sent) event.preventDefault();
  sent.dataset.sent = "yes";
}

function stepThrough() {
  const stepper = document.querySelector(".stepper");
  const cells = [...document.querySelectorAll(".grid .cell")];
  if (!stepper || !cells.length || !window.matchMedia("(max-width: 700px)").matches) return;
  const main = document.querySelector("main");
  let at = 0;
  const show = () => {
    const done = at >= cells.length;
    main.classList.toggle("stepping", !done);
    stepper.hidden = done;
    cells.forEach((cell, number) => cell.classList.toggle("now", number === at));
    stepper.querySelector(".step").textContent = done ? "" : `${at + 1} of ${cells.length}`;
    stepper.querySelector("[data-step=back]").disabled = at === 0;
    if (done) document.getElementById("save").focus();
  };
  stepper.addEventListener("click", (event) => {
    const step = event.target.dataset.step;
    if (!step) return;
    if (step !== "back") {
      cells[at].querySelector(".card input").checked = step === "yes";
      cells[at].querySelector(".unsure input").checked = step === "unsure";
    }
    at = Math.max(0, at + (step === "back" ? -1 : 1));
    count();
    show();
  });
  show();
}

async function lookForWork() {
  try {
    const reply = await fetch("/ready", { headers: { accept: "application/json" } });
    if (reply.ok && (await reply.json()).left > 0) location.replace("/");
    else if (reply.status === 403) location.reload();
  } catch {
    // The server cannot be reached: try again later.
  }
}

document.addEventListener("keydown", onKey);
document.addEventListener("submit", onSubmit);
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
form?.addEventListener("change", (event) => {
  if (event.target.closest(".card")) chose(event.target);
  count();
});
count();
stepThrough();
if (document.querySelector("[data-idle]")) setInterval(lookForWork, 2000);
