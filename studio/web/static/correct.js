"use strict";
// Corrections without leaving the page: a click or a key sends the form, and the card shows what stands now.
(() => {
  const cells = [...document.querySelectorAll(".cell")];
  const announcement = document.getElementById("announcement");

  function show(cell, label, by, seen) {
    cell.classList.remove("yes", "no", "unknown");
    cell.classList.add(label);
    cell.classList.toggle("corrected", by !== "");
    for (const button of cell.querySelectorAll("button")) {
      if (button.value === "clear") button.hidden = by === "";
      else button.setAttribute("aria-pressed", String(button.value === label));
    }
    cell.querySelector(".by").textContent = by ? `corrected by ${by}` : "";
    for (const one of document.querySelectorAll('.cell input[name="seen"]')) {
      if (one.form === cell) one.value = seen;
    }
    announcement.textContent = `${cell.getAttribute("aria-label")}: ${label}`;
  }

  async function send(cell, label) {
    const trouble = cell.querySelector(".trouble");
    const body = new URLSearchParams(new FormData(cell));
    body.set("label", label);
    body.set("json", "1");
    try {
      const reply = await fetch(cell.action, { method: "POST", body, credentials: "same-origin" });
      const said = await reply.json();
      trouble.hidden = reply.ok;
      if (reply.ok) show(cell, said.label, said.by, said.seen);
      else trouble.textContent = said.problem;
    } catch {
      trouble.hidden = false;
      trouble.textContent = "Nothing was saved: the studio does not answer. Try again.";
    }
  }

  document.addEventListener("submit", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell || !event.submitter) return;
    event.preventDefault();
    send(cell, event.submitter.value);
  });

  // How many cards stand in a row, so that up and down go where the eye goes.
  const across = () => cells.filter((one) => one.offsetTop === cells[0].offsetTop).length || 1;
  const KEYS = { y: "yes", n: "no", c: "clear" };
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across(), ArrowUp: -across() }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      cells[Math.min(Math.max(cells.indexOf(cell) + step, 0), cells.length - 1)].focus();
    } else if (KEYS[event.key]) {
      event.preventDefault();
      send(cell, KEYS[event.key]);
    }
  });
})();
