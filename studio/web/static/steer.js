"use strict";
// What a person wants of the discovery: sent without leaving the page; what is wrong stands at its field.
(() => {
  const { key } = byId("asking").dataset;
  const SHOWN = 3;

  function showOutcome(form, words, bad, field) {
    const place = form.querySelector(".outcome") ?? form.appendChild(make("span", { class: "outcome", role: "status" }));
    place.className = bad ? "outcome bad" : "outcome caption";
    place.id = place.id || `outcome-${Math.random().toString(36).slice(2)}`;
    place.textContent = words;
    for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
    const wrong = bad && field ? form.querySelector(`input[name="${field}"]:not([type="hidden"]), textarea[name="${field}"]`) : null;
    if (!wrong) return;
    wrong.setAttribute("aria-invalid", "true");
    wrong.setAttribute("aria-describedby", place.id);
    wrong.focus();
  }
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form.command");
    if (!form) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form));
    body.set("json", "1");
    const reply = await fetch(form.getAttribute("action"), { method: "POST", body }).catch(() => null);
    const said = reply ? await reply.json().catch(() => ({})) : {};
    if (!reply?.ok) {
      showOutcome(form, said.problem ? `not entered: ${said.problem}` : "not entered: the studio does not answer", true, said.field);
    } else if (form.classList.contains("stays")) {
      form.reset();
      if (form.closest("#pick")) choose([]);
      showOutcome(form, said.said, false);
    } else form.replaceChildren(make("span", { class: "caption", role: "status" }, said.said));
  });

  // The picker: three examples by search, from the grid, or by a link (?ask=ID,ID,ID).
  const pick = byId("pick");
  if (!pick) return;
  const known = new Map();
  let chosen = [], shown = 0, asked = 0;

  function picture(one) {
    if (one.text !== null && one.text !== undefined) return make("bdi", { class: "text", dir: "auto" }, one.text);
    if (one.row === undefined) return make("bdi", {}, one.id);
    const image = make("img", { src: `/live/${key}/media/${one.row}/small`, alt: "", loading: "lazy" });
    image.addEventListener("error", () => image.replaceWith(make("bdi", {}, one.id)));
    return image;
  }
  function choose(ids) {
    chosen = ids.slice(-SHOWN);
    const left = SHOWN - chosen.length;
    byId("chosen").replaceChildren(
      ...chosen.map((id) => make("span", { class: "tile", title: id }, picture(known.get(id) ?? { id }), make("input", { type: "hidden", name: "examples", value: id }))),
      make("span", { class: "caption" }, left ? `choose ${left === SHOWN ? "three" : `${left} more`}` : `${chosen.join(", ")}`));
    for (const button of byId("picker").children) button.setAttribute("aria-pressed", String(chosen.includes(button.dataset.id)));
  }
  function toggle(id) {
    choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  }
  async function fill(after) {
    const number = (asked += 1);
    const address = `/live/${key}/examples?${new URLSearchParams({ q: byId("search").value, after })}`;
    const reply = await fetch(address).then((one) => (one.ok ? one.json() : null)).catch(() => null);
    if (!reply || number !== asked) return;
    if (!after) byId("picker").replaceChildren();
    for (const one of reply.examples) {
      known.set(one.id, one);
      const button = make("button", { type: "button", class: "tile", "data-id": one.id, "aria-pressed": String(chosen.includes(one.id)), "aria-label": `${one.id} ${one.text ?? ""}`.trim(), title: one.id }, picture(one));
      button.addEventListener("click", () => toggle(one.id));
      byId("picker").append(button);
    }
    shown = after + reply.examples.length;
    byId("shown").textContent = `${shown} of ${reply.total} examples`;
    byId("more").hidden = shown >= reply.total;
    if (!after) choose(chosen);
  }
  let waits;
  byId("search").addEventListener("input", () => {
    clearTimeout(waits);
    waits = setTimeout(() => fill(0), 200);
  });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it searches, and asks nothing
  });
  byId("more").addEventListener("click", () => fill(shown));
  pick.addEventListener("toggle", () => {
    if (pick.open && !shown) fill(0);
  });
  function linked() {
    try {
      return location.search.slice(1).split("&").filter((part) => part.startsWith("ask="))
        .flatMap((part) => part.slice(4).split(",")).map((part) => decodeURIComponent(part.replaceAll("+", " ")));
    } catch {
      return []; // not written by us
    }
  }
  choose([...new Set(linked())]);
  if (chosen.length) {
    pick.open = true;
    pick.scrollIntoView();
  }
})();
