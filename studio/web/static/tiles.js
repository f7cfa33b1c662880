// The grid: tiles that are opened by a click, selected by their boxes, by keys, or with Shift and Ctrl.
function makeTiles(about, pictures, { open, selected: onSelected, all }) {
  const grid = byId("grid");
  const selected = new Map(); // place -> id
  let boxes = []; // of the tiles that are shown, in their order
  let anchor = null;

  const LETTERS = [90, 240, 500, 1_000, 2_000];
  function tileOf({ place, id, text, note, predicted }) {
    const title = predicted ? `${id} — chosen by a predicted label` : id;
    const tile = make("button", { type: "button", class: predicted ? "tile predicted" : "tile", "data-example": place, title, tabindex: "-1" });
    if (about.pictured) tile.append(make("img", { "data-picture": place, alt: id, decoding: "async" }));
    const letters = LETTERS[Number(grid.dataset.size) - 1];
    if (about.texts) tile.append(make("bdi", { class: "text" }, text ? (text.length > letters ? `${text.slice(0, letters)}…` : text) : id));
    else if (!about.pictured) tile.append(make("bdi", {}, id));
    const box = make("input", { type: "checkbox", "aria-label": `select ${id}`, tabindex: "-1" });
    box.checked = selected.has(place);
    const pick = make("div", { class: "pick" }, tile, box, ...(note ? [make("span", { class: "caption" }, make("bdi", {}, note))] : []));
    pick.classList.toggle("selected", box.checked);
    return { pick, tile, box, place, id };
  }

  function mark(one, wanted) {
    if (wanted) selected.set(one.place, one.id);
    else selected.delete(one.place);
    one.box.checked = wanted;
    one.pick.classList.toggle("selected", wanted);
  }
  // From the one that was chosen last up to this one, all as this one becomes.
  function choose(at, { upTo = false, wanted = !selected.has(boxes[at].place) } = {}) {
    const from = upTo && anchor !== null ? Math.min(anchor, boxes.length - 1) : at;
    for (let place = Math.min(from, at); place <= Math.max(from, at); place++) mark(boxes[place], upTo ? true : wanted);
    if (!upTo) anchor = at;
    onSelected(selected);
  }
  const placeOf = (element) => boxes.findIndex(({ pick }) => pick === element.closest(".pick"));
  function focus(at) {
    const one = boxes[Math.max(0, Math.min(at, boxes.length - 1))];
    if (!one) return;
    boxes.forEach(({ tile }) => { tile.tabIndex = -1; });
    one.tile.tabIndex = 0;
    one.tile.focus();
  }
  function inRow() {
    const top = boxes[0].pick.offsetTop;
    const next = boxes.findIndex(({ pick }) => pick.offsetTop !== top);
    return next < 0 ? boxes.length : next;
  }

  grid.addEventListener("click", (event) => {
    const at = placeOf(event.target);
    if (at < 0) return;
    const onBox = event.target.matches("input");
    if (!onBox && !event.target.closest(".tile")) return;
    event.stopPropagation();
    if (event.shiftKey) choose(at, { upTo: true });
    else if (onBox) choose(at, { wanted: event.target.checked });
    else if (event.ctrlKey || event.metaKey) choose(at);
    else open(boxes[at].place);
  });
  grid.addEventListener("keydown", (event) => {
    const at = placeOf(event.target);
    if (at < 0) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -inRow(), ArrowDown: inRow(), Home: -at, End: boxes.length - 1 - at };
    if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const to = Math.max(0, Math.min(at + steps[event.key], boxes.length - 1));
      if (event.shiftKey) {
        if (anchor === null || !selected.has(boxes[at].place)) choose(at, { wanted: true });
        choose(to, { upTo: true });
      }
      focus(to);
    } else if (event.key === " " || event.key === "x") {
      event.preventDefault();
      choose(at, { upTo: event.shiftKey });
    } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      all();
    }
  });
  grid.addEventListener("keyup", (event) => { if (event.key === " " && !event.target.matches("input")) event.preventDefault(); });

  return {
    selected,
    clear() { boxes = []; anchor = null; grid.replaceChildren(); },
    add(tiles) {
      const added = tiles.map(tileOf);
      boxes.push(...added);
      grid.append(...added.map(({ pick }) => pick));
      if (boxes.length && !boxes.some(({ tile }) => tile.tabIndex === 0)) boxes[0].tile.tabIndex = 0;
      pictures.watch(grid);
    },
    select(examples) {
      selected.clear();
      for (const { place, id } of examples) selected.set(place, id);
      for (const one of boxes) {
        one.box.checked = selected.has(one.place);
        one.pick.classList.toggle("selected", one.box.checked);
      }
      onSelected(selected);
    },
    toggle(place, id) {
      const at = boxes.findIndex((one) => one.place === place);
      if (at >= 0) choose(at);
      else {
        if (!selected.delete(place)) selected.set(place, id);
        onSelected(selected);
      }
    },
    focusOn(place) { const at = boxes.findIndex((one) => one.place === place); if (at >= 0) focus(at); },
    next(place, by) {
      const at = boxes.findIndex((one) => one.place === place);
      return at < 0 ? null : at + by < boxes.length ? boxes[at + by]?.place ?? -1 : -2;
    },
  };
}
