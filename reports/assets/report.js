(() => {
  const data = JSON.parse(byId("data").textContent);
  const FIRST = 120;
  const MORE = 240;

  // Pictures: read when the first one is needed, given to an image when it comes near the window.
  let pictures = null;
  function source(place, size) {
    if (data.media) return `${data.media}${place}/${size}`;
    if (pictures === null) pictures = JSON.parse(byId("pictures").textContent);
    return pictures[place] ? `data:${data.mime};base64,${pictures[place]}` : "";
  }
  function fill(image) {
    const url = source(Number(image.dataset.picture), image.closest(".large") ? "large" : "small");
    if (url) image.src = url;
    else if (data.texts) image.remove();
    else image.closest(".tile, .large")?.classList.add("missing");
    image.removeAttribute("data-picture");
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      if (target.dataset.picture) fill(target);
    }
  }, { rootMargin: "600px" });
  const watch = (root) => root.querySelectorAll("img[data-picture]").forEach((image) => near.observe(image));
  watch(document);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("img[data-picture]").forEach(fill);
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });

  // The browser by features.
  const browser = makeBrowser(data.labels, data.ids.length);
  const choice = new Map(); // feature -> "yes" or "no"
  let matching = [];
  let shown = 0;
  const tiles = new Array(data.ids.length);

  function tileOf(place) {
    if (tiles[place]) return tiles[place];
    const name = data.ids[place];
    const tile = make("button", { type: "button", class: "tile", "data-example": place, title: name });
    if (data.pictured) tile.append(make("img", { "data-picture": place, alt: name, decoding: "async" }));
    if (data.texts) tile.append(make("bdi", { class: "text" }, data.texts[place].slice(0, 240) || name));
    else if (!data.pictured) tile.append(make("bdi", {}, name));
    tiles[place] = tile;
    return tile;
  }

  // Dashed where a label that it was chosen by is predicted.
  function markedTile(place) {
    const tile = tileOf(place);
    const by = [...choice.keys()].some((number) => data.predicted[number][place] !== undefined);
    tile.classList.toggle("predicted", by);
    tile.title = by ? `${data.ids[place]} — chosen by a predicted label` : data.ids[place];
    return tile;
  }

  const rows = data.features.map((feature, number) => {
    const button = (side, word) => make("button", {
      type: "button", class: side, "data-side": side, "data-feature": number, "aria-pressed": "false",
      "aria-label": `${word} ${feature.name}`,
    });
    const sides = { yes: button("yes", "has"), no: button("no", "lacks") };
    const name = make("bdi", { title: feature.definition || feature.name }, feature.name);
    const row = make("li", {}, name, sides.yes, sides.no);
    byId("facets").append(row);
    return { row, sides, name: feature.name.toLocaleLowerCase() };
  });

  function showMore(wanted) {
    const added = matching.slice(shown, shown + wanted).map(markedTile);
    byId("grid").append(...added);
    shown += added.length;
    watch(byId("grid"));
  }

  function refresh() {
    matching = browser.matches(choice);
    const counts = browser.counts(choice);
    rows.forEach(({ row, sides }, number) => {
      for (const side of ["yes", "no"]) {
        const pressed = choice.get(number) === side;
        const examples = counts[number][side].toLocaleString("en");
        sides[side].textContent = examples;
        sides[side].setAttribute("aria-label", `${side === "yes" ? "has" : "lacks"} ${data.features[number].name}: ${examples}`);
        sides[side].setAttribute("aria-pressed", String(pressed));
        sides[side].disabled = counts[number][side] === 0 && !pressed;
      }
      row.classList.toggle("chosen", choice.has(number));
    });
    byId("chosen").replaceChildren(...[...choice].map(([number, side]) => make("li", { class: side },
      make("button", { type: "button", "data-feature": number, "data-side": side },
        make("span", { class: "skip" }, "remove "), side === "yes" ? "" : "not ", make("bdi", {}, data.features[number].name), " ✕"))));
    byId("matched").textContent =
      `${matching.length.toLocaleString("en")} of ${data.ids.length.toLocaleString("en")} examples`;
    byId("clear").disabled = choice.size === 0;
    byId("grid").replaceChildren();
    shown = 0;
    showMore(FIRST);
  }

  function choose(number, side) {
    if (choice.get(number) === side) choice.delete(number);
    else choice.set(number, side);
    refresh();
    remember();
  }

  // The address holds the choice and the open example: #yes=glasses&no=beard&example=face-001
  let open = null;
  function remember() {
    const address = new URLSearchParams();
    for (const [number, side] of choice) address.append(side, data.features[number].name);
    if (open !== null) address.append("example", data.ids[open]);
    const text = address.toString();
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // Inside a notebook's frame there is no address to change.
    }
  }
  function recall() {
    const text = location.hash.slice(1);
    if (!text.includes("=")) return false;
    const address = new URLSearchParams(text);
    choice.clear();
    for (const side of ["yes", "no"]) {
      for (const name of address.getAll(side)) {
        const number = data.features.findIndex((feature) => feature.name === name);
        if (number >= 0) choice.set(number, side);
      }
    }
    refresh();
    const place = data.ids.indexOf(address.get("example"));
    if (place >= 0) showExample(place);
    return true;
  }

  // One example with all its features and votes.
  const dialog = byId("example");
  function votesOf(feature, place) {
    const corrector = data.corrected[feature][place];
    if (corrector !== undefined) return `corrected by ${corrector}`;
    const chance = data.predicted[feature][place];
    if (chance !== undefined) return `predicted, ${chance}\u00a0% yes`;
    const [yes, no, abstained] = data.tallies[data.votes[feature][place]];
    const said = [[yes, "yes"], [no, "no"], [abstained, "abstained"]].filter(([votes]) => votes);
    return said.map(([votes, word]) => `${votes} ${word}`).join(", ") || "no votes";
  }
  function listOf(title, style, place, features) {
    if (!features.length) return "";
    const lines = features.map((feature) => make("li", {},
      make("a", { href: `#feature-${feature + 1}`, "data-leave": true }, make("bdi", {}, data.features[feature].name)),
      make("span", { class: "caption" }, votesOf(feature, place)),
      data.doubtful[feature].includes(place) ? make("span", { class: "bad" }, "doubtful") : ""));
    return make("section", { class: style }, make("h3", {}, `${title} (${features.length})`), make("ul", {}, ...lines));
  }
  function showExample(place) {
    open = place;
    const with_ = (value) => data.labels.map((line, feature) => [line[place], feature]).filter(([one]) => one === value)
      .map(([, feature]) => feature);
    const text = data.texts ? [make("p", { class: "whole", dir: "auto" }, data.texts[place])] : [];
    const picture = data.texts && !data.pictured ? []
      : [make("div", { class: "large" }, data.pictured ? make("img", { "data-picture": place, alt: "" }) : "")];
    byId("example-name").replaceChildren(make("bdi", {}, data.ids[place]));
    byId("example-body").replaceChildren(...picture, ...text, make("div", { class: "lists" },
      listOf("has", "yes", place, with_("1")), listOf("lacks", "no", place, with_("0")),
      listOf("unknown", "unknown", place, with_("-"))));
    byId("example-body").querySelectorAll("img[data-picture]").forEach(fill);
    if (!dialog.open) dialog.showModal();
    remember();
  }
  function step(by) {
    const list = matching.includes(open) ? matching : data.ids.map((_, place) => place);
    const at = list.indexOf(open) + by;
    showExample(list[(at + list.length) % list.length]);
  }
  dialog.addEventListener("close", () => { open = null; remember(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });

  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-side], [data-example], [data-facet], [data-step], [data-leave]");
    if (!target) {
      if (event.target === dialog) dialog.close();
      return;
    }
    if (target.dataset.step) step(Number(target.dataset.step));
    else if (target.dataset.leave !== undefined) dialog.close();
    else if (target.dataset.side) choose(Number(target.dataset.feature), target.dataset.side);
    else if (target.dataset.example) showExample(Number(target.dataset.example));
    else if (target.dataset.facet) {
      choice.clear();
      choose(Number(target.dataset.facet), "yes");
      byId("browse").scrollIntoView();
    }
  });
  byId("clear").addEventListener("click", () => { choice.clear(); refresh(); remember(); });
  byId("find").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLocaleLowerCase();
    let any = false;
    for (const { row, name } of rows) {
      row.hidden = !name.includes(wanted);
      any ||= !row.hidden;
    }
    byId("no-facet").hidden = any;
  });
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && shown < matching.length) showMore(MORE);
  }, { rootMargin: "800px" }).observe(byId("sentinel"));
  window.addEventListener("hashchange", recall);

  byId("browse").hidden = false;
  if (recall()) byId("browse").scrollIntoView();
  else {
    refresh();
    if (location.hash === "#browse") byId("browse").scrollIntoView();
  }
})();
