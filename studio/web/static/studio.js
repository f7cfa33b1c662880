"use strict";
// What all pages of the studio do beside htmx: keys, menus, lists that are filtered as one types. Pages work without it.
{
  const typing = (element) => element.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]");
  const closeMenus = (but) => document.querySelectorAll("details.menu[open]").forEach((menu) => { if (menu !== but) menu.open = false; });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus();
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    const wanted = [...document.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]`)].at(-1);
    if (!wanted) return;
    event.preventDefault();
    wanted.click();
    wanted.parentElement.querySelector(":scope > div :is(input:not([type=hidden]), select, textarea, button)")?.focus();
  });
  document.addEventListener("click", (event) => {
    closeMenus(event.target.closest("details.menu"));
    const example = event.target.closest("[data-example]");
    const place = event.target.closest("[data-browse]");
    if (example && place) location.href = `${place.dataset.browse}#${new URLSearchParams({ example: example.dataset.name ?? example.title.split(" — ")[0] })}`;
  });
  document.addEventListener("input", ({ target }) => {
    if (!target.dataset?.filters) return;
    const words = target.value.toLocaleLowerCase().split(/\s+/);
    for (const line of document.querySelectorAll(target.dataset.filters)) {
      line.hidden = !words.every((word) => line.textContent.toLocaleLowerCase().includes(word));
      if (!line.hidden && target.value && line.closest("details")) line.closest("details").open = true;
    }
  });
  const weigh = () => document.querySelectorAll("[data-needs]").forEach((button) => {
    button.disabled = document.querySelectorAll(`[form="${button.form.id}"]:checked`).length !== Number(button.dataset.needs);
  });
  document.addEventListener("change", ({ target }) => { weigh(); if (target.matches("[data-submits]")) target.form.requestSubmit(); });
  document.addEventListener("error", ({ target }) => { if (target.matches?.("img.thumb")) target.closest(".tile").remove(); }, true);
  weigh();

  // A command that can be taken back is held for some seconds: nothing is sent before, and leaving the page sends it.
  // The stream may replace the form meanwhile, so what it sends is kept here.
  const HELD = 5000;
  const held = new Map();
  const release = (name) => { clearTimeout(held.get(name)?.timer); held.get(name)?.toast.remove(); held.delete(name); };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const name = form.dataset.held;
    if (!name) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (held.has(name)) return;
    const action = form.getAttribute("action"); // form.action is its field of that name
    const values = Object.fromEntries(new FormData(form));
    const undo = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo" });
    const toast = document.createElement("div");
    toast.className = "toast";
    toast.setAttribute("role", "status");
    undo.dataset.key = "z";
    toast.append(name, " ", undo);
    document.getElementById("toasts").append(toast);
    undo.addEventListener("click", () => release(name));
    const send = () => { release(name); htmx.ajax("POST", action, { values, target: "#toasts", swap: "beforeend" }); };
    held.set(name, { toast, action, values, timer: setTimeout(send, HELD) });
  }, true);
  window.addEventListener("pagehide", () => {
    for (const { action, values } of held.values()) fetch(action, { method: "POST", body: new URLSearchParams(values), keepalive: true });
  });
}
const SAID = 8000; // milliseconds for which a toast stands that offers nothing
document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (target.id === "toasts") { const said = target.lastElementChild; setTimeout(() => said?.remove(), SAID); }
});
// What the stream of a discovery sends again takes the place of what was there: nothing else moves.
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  for (const line of [...detail.fragment.querySelectorAll("li[id]")]) {
    const there = document.getElementById(line.id);
    if (!there) continue;
    there.replaceWith(line);
    htmx.process(line);
  }
});
