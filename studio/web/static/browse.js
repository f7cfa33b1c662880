// The browser of examples. A catalogue (of what the page carries, or of what the studio serves) finds them; all that is
// chosen stands in the address.
function startBrowser(catalogue, pictures, { reveal = () => byId("browse").scrollIntoView() } = {}) {
  const FIRST = 120;
  const MORE = 240;
  const PIXELS = { images: [72, 96, 150, 230, 360], texts: [150, 220, 300, 420, 640] };
  const { about } = catalogue;
  const spelled = (number) => number.toLocaleString("en");
  let choice = nothingChosen();
  let answered = { matching: 0, total: about.total, live: "" };
  let loaded = 0;
  let asked = 0; // what was asked before the latest question is not shown any more
  let loading = false;

  // Answers of a server are awaited; those of the page itself are there at once.
  const settle = (value, next) => (value && value.then ? value.then(next, failed) : next(value));
  function failed(problem) {
    loading = false;
    byId("matched").textContent = problem.message;
    byId("matched").classList.add("bad");
  }

  const tiles = makeTiles(about, pictures, { open: openExample, selected: showSelected, all: selectAll });
  const updateFacets = makeFacets(about, (change) => { change(choice); refresh(); remember(); });
  const dialog = makeDialog(catalogue, pictures, {
    step,
    closed: (place) => {
      choice.example = null;
      remember();
      if (byId("grid").contains(document.activeElement)) tiles.focusOn(place);
    },
    alike: (kind, id) => { choice.sort = `${kind}.${id}`; choice.reverse = false; refresh(); remember(); reveal(); },
    isSelected: (place) => tiles.selected.has(place),
    toggle: tiles.toggle,
    shown: ({ id }) => { choice.example = id; remember(); },
  });

  function refresh() {
    const question = ++asked;
    loading = true;
    byId("grid").setAttribute("aria-busy", "true");
    settle(catalogue.find(choice, 0, FIRST), (answer) => {
      if (question !== asked) return;
      loading = false;
      answered = answer;
      byId("grid").removeAttribute("aria-busy");
      byId("matched").classList.remove("bad");
      byId("matched").textContent = `${spelled(answer.matching)} of ${spelled(answer.total)} examples`;
      byId("ignored").hidden = !answer.ignored.length;
      byId("ignored").textContent = `Not here now, and ignored: ${answer.ignored.join(", ")}`;
      byId("clear").disabled = !choosesSomething(choice);
      showTools();
      showChips();
      updateFacets(answer, choice);
      tiles.clear();
      tiles.add(answer.tiles);
      loaded = answer.tiles.length;
      showSelected(tiles.selected);
    });
  }
  function showMore(then = () => {}) {
    if (loading || loaded >= answered.matching) return;
    const question = asked;
    loading = true;
    settle(catalogue.find(choice, loaded, MORE), (answer) => {
      loading = false;
      if (question !== asked) return;
      tiles.add(answer.tiles);
      loaded += answer.tiles.length;
      then();
    });
  }

  function showChips() {
    const chip = (style, words, name, change) => {
      const button = make("button", { type: "button" }, make("span", { class: "skip" }, "remove "), words, make("bdi", {}, name), " ✕");
      button.addEventListener("click", () => { change(); refresh(); remember(); });
      return make("li", { class: style }, button);
    };
    const words = { yes: "", no: "not " };
    const near = /^(near|embedding)\.(.*)$/s.exec(choice.sort);
    byId("chosen").replaceChildren(
      ...choice.features.map(([mark, name]) => chip(mark, words[mark] ?? `${mark}: `, name, () => toggleFeature(choice, mark, name))),
      ...choice.any.map((mark) => chip("mark", "any label ", mark, () => { choice.any = toggled(choice.any, mark); })),
      ...[...choice.values].flatMap(([name, values]) => values.map((value) =>
        chip("value", "", `${name}: ${value}`, () => toggleValue(choice, name, value)))),
      ...[...choice.ranges].map(([name, [low, high]]) =>
        chip("value", "", `${name}: ${low === "" ? "…" : low} – ${high === "" ? "…" : high}`, () => choice.ranges.delete(name))),
      ...[...choice.empty].map((name) => chip("value", "", `${name}: no value`, () => choice.empty.delete(name))),
      ...(choice.q ? [chip("value", "search: ", choice.q, () => { choice.q = ""; byId("words").value = ""; })] : []),
      ...(near ? [chip("value", "most alike to ", near[2], () => { choice.sort = "order"; })] : []));
  }

  // Search, order and size.
  const option = (value, words) => make("option", { value }, words);
  const group = (words, ...options) => (options.length ? [make("optgroup", { label: words }, ...options)] : []);
  byId("sort").append(option("order", "data set"), option("id", "id"),
    ...(about.features.length ? [option("doubt", "doubt of any label")] : []),
    ...group("columns", ...about.columns.map(({ name }) => option(`column.${name}`, name))),
    ...group("how much speaks for", ...about.features.map(({ name }) => option(`score.${name}`, name))),
    ...group("doubt of", ...about.features.map(({ name }) => option(`doubt.${name}`, name))));
  function showTools() {
    const words = byId("words");
    if (document.activeElement !== words) words.value = choice.q;
    byId("sort").querySelector(".alike")?.remove();
    if (![...byId("sort").options].some(({ value }) => value === choice.sort)) {
      byId("sort").append(make("option", { value: choice.sort, class: "alike" }, "most alike"));
    }
    byId("sort").value = choice.sort;
    byId("reverse").setAttribute("aria-pressed", String(choice.reverse));
    byId("size").value = choice.size;
    byId("grid").dataset.size = choice.size;
    byId("grid").style.setProperty("--tile", `${PIXELS[about.texts ? "texts" : "images"][choice.size - 1]}px`);
  }
  byId("words").addEventListener("input", later(() => { choice.q = byId("words").value.trim(); refresh(); remember(); }));
  byId("sort").addEventListener("change", () => { choice.sort = byId("sort").value; choice.reverse = false; refresh(); remember(); });
  byId("reverse").addEventListener("click", () => { choice.reverse = !choice.reverse; refresh(); remember(); });
  byId("size").addEventListener("input", () => { choice.size = Number(byId("size").value); about.texts ? refresh() : showTools(); remember(); });
  byId("clear").addEventListener("click", () => {
    choice = { ...nothingChosen(), size: choice.size, selected: choice.selected };
    byId("words").value = "";
    document.querySelectorAll("#columns .look").forEach((one) => { one.value = ""; });
    refresh();
    remember();
  });

  // Selected examples.
  function showSelected(selected) {
    choice.selected = [...selected.values()];
    byId("selected").textContent = `${spelled(selected.size)} selected`;
    byId("select-all").textContent = `select all ${spelled(answered.matching)}`;
    byId("select-all").disabled = answered.matching === 0;
    for (const name of ["select-none", "export-ids", "export-parquet"]) byId(name).disabled = selected.size === 0;
    byId("not-linked").hidden = selected.size <= MOST_LINKED;
    const live = answered.live && selected.size === 3 && choice.selected.every((id) => id !== undefined);
    byId("ask").hidden = !live;
    if (live) byId("ask").href = `${answered.live}?ask=${choice.selected.map(encodeURIComponent).join(",")}`;
    remember();
  }
  function selectAll() { settle(catalogue.matching(choice), tiles.select); }
  const chosenExamples = () => [...tiles.selected].map(([place, id]) => ({ place, id })).sort((a, b) => a.place - b.place);
  byId("select-all").addEventListener("click", selectAll);
  byId("select-none").addEventListener("click", () => tiles.select([]));
  byId("export-ids").addEventListener("click", () => catalogue.exports.ids(chosenExamples()));
  byId("export-parquet").hidden = !catalogue.exports.parquet;
  byId("export-parquet").addEventListener("click", () => catalogue.exports.parquet(chosenExamples()));

  // One example, and the next ones: those of the grid, or all in the data set's order.
  function openExample(wanted) { settle(catalogue.example(wanted), dialog.show); }
  function step(place, by) {
    const next = tiles.next(place, by);
    if (next === null) openExample(place + by);
    else if (next >= 0) openExample(next);
    else if (next === -2) showMore(() => step(place, by));
  }

  let ready = false;
  function remember() {
    if (!ready) return;
    const text = writeChoice(choice);
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // Inside a notebook's frame there is no address to change.
    }
  }
  function recall() {
    const text = location.hash.slice(1);
    if (!text.includes("=")) return false;
    ready = false;
    choice = readChoice(text);
    const { selected, example } = choice;
    refresh();
    settle(selected.length ? catalogue.named(selected) : [], (examples) => {
      tiles.select(examples);
      ready = true;
      if (example !== null) openExample(example);
    });
    return true;
  }

  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) showMore();
  }, { rootMargin: "800px" }).observe(byId("sentinel"));
  window.addEventListener("hashchange", recall);

  byId("browse").hidden = false;
  const recalled = recall();
  if (!recalled) {
    refresh();
    ready = true;
  }
  return {
    catalogue,
    open: openExample,
    only(number) {
      choice = { ...nothingChosen(), size: choice.size, selected: choice.selected };
      toggleFeature(choice, "yes", about.features[number].name);
      refresh();
      remember();
      reveal();
    },
  };
}
