// One example with its picture, text, columns, features and votes; the arrow keys go to its neighbours in the grid.
function makeDialog(catalogue, pictures, { step, closed, alike, isSelected, toggle, shown }) {
  const dialog = byId("example");
  let open = null;

  function listOf(title, style, labels) {
    if (!labels.length) return "";
    const lines = labels.map(({ number, words, doubtful, contradicted }) => make("li", {},
      make("a", { href: catalogue.featureLink(number), "data-leave": true }, make("bdi", {}, catalogue.about.features[number].name)),
      make("span", { class: "caption", dir: "auto" }, words),
      contradicted ? make("span", { class: "bad" }, "contradicts its question") : doubtful ? make("span", { class: "bad" }, "doubtful") : ""));
    return make("section", { class: style }, make("h3", {}, `${title} (${labels.length})`), make("ul", {}, ...lines));
  }
  function pictureOf(example) {
    if (!example.pictured) return catalogue.about.texts ? [] : [make("div", { class: "large missing" })];
    if (example.film) {
      return [make("div", { class: "large" }, make("video", { src: catalogue.source(example.place, "large"), controls: true, muted: true, loop: true, playsinline: true, "aria-label": `film ${example.id}` }))];
    }
    const image = make("img", { "data-picture": example.place, alt: example.id });
    const box = make("div", { class: "large" }, image);
    if (example.moves) box.append(pauseOf(image, example.place));
    return [box];
  }
  // An animation rests until it is started where the person wants reduced motion, and can be paused.
  function pauseOf(image, place) {
    const button = make("button", { type: "button", class: "pause" });
    let still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const set = () => {
      button.textContent = still ? "play" : "pause";
      image.removeAttribute("data-picture");
      image.src = catalogue.source(place, still ? "large-still" : "large");
    };
    button.addEventListener("click", () => { still = !still; set(); });
    set();
    return button;
  }
  function alikeButtons(place, id) {
    if (!catalogue.about.features.length && !catalogue.about.embedded) return "";
    const button = (kind, words) => {
      const made = make("button", { type: "button", class: "see-alike", "data-alike": kind }, words);
      made.addEventListener("click", () => { dialog.close(); alike(kind, id); });
      return made;
    };
    return make("p", { class: "alike" }, "Most alike: ",
      ...(catalogue.about.features.length ? [button("near", "by features")] : []),
      ...(catalogue.about.embedded ? [button("embedding", "by embedding")] : []));
  }
  function markSelect() {
    const chosen = isSelected(open.place);
    byId("example-select").setAttribute("aria-pressed", String(chosen));
    byId("example-select").textContent = chosen ? "selected" : "select";
  }

  function show(example) {
    if (!example) return;
    open = example;
    const of = (label) => example.labels.map((one, number) => ({ ...one, number })).filter((one) => one.label === label);
    const text = example.text ? [make("p", { class: "whole", dir: "auto" }, example.text)] : [];
    const cells = example.columns.filter(([, value]) => value !== "");
    const columns = cells.length ? [make("dl", { class: "cells-of" }, ...cells.flatMap(([name, value]) =>
      [make("dt", {}, make("bdi", {}, name)), make("dd", {}, make("bdi", {}, value))]))] : [];
    byId("example-name").replaceChildren(make("bdi", {}, example.id));
    byId("example-body").replaceChildren(...pictureOf(example), ...text, make("div", { class: "lists" },
      alikeButtons(example.place, example.id), ...columns,
      listOf("has", "yes", of("yes")), listOf("lacks", "no", of("no")), listOf("unknown", "unknown", of("unknown"))));
    pictures.giveAll(byId("example-body"));
    byId("example-zoom").hidden = !example.pictured;
    markSelect();
    if (!dialog.open) dialog.showModal();
    shown(example);
  }
  function zoom() {
    if (byId("example-zoom").hidden) return;
    const large = dialog.classList.toggle("zoomed");
    byId("example-zoom").setAttribute("aria-pressed", String(large));
  }

  dialog.addEventListener("close", () => { const { place } = open; open = null; closed(place); });
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("video")) return;
    if (event.key === "ArrowLeft") step(open.place, -1);
    else if (event.key === "ArrowRight") step(open.place, 1);
    else if (event.key === "x") toggleOpen();
    else if (event.key === "z") zoom();
  });
  function toggleOpen() { toggle(open.place, open.id); markSelect(); }
  dialog.addEventListener("click", (event) => {
    const target = event.target.closest("[data-step], [data-leave]");
    if (event.target === dialog) dialog.close();
    else if (target?.dataset.step) step(open.place, Number(target.dataset.step));
    else if (target) dialog.close();
    else if (event.target.matches(".large img")) zoom();
  });
  byId("example-select").addEventListener("click", toggleOpen);
  byId("example-zoom").addEventListener("click", zoom);
  return { show, isOpen: () => open !== null };
}
