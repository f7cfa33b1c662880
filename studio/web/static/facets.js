// The panel of facets: marks of labels, features, and the columns of the data set, each with how many would match.
function makeFacets(about, changed) {
  const spelled = (number) => number.toLocaleString("en");
  const OPEN_COLUMNS = 2;
  const MANY_VALUES = 12;

  function facetButton(attributes, ...children) {
    return make("button", { type: "button", "aria-pressed": "false", ...attributes }, ...children);
  }
  const unseen = (words) => make("span", { class: "skip" }, words); // what is heard before what is seen
  function show(button, count, pressed, words = "") {
    button.querySelector(".count").textContent = spelled(count);
    if (words) button.setAttribute("aria-label", `${words}: ${spelled(count)}`);
    button.setAttribute("aria-pressed", String(pressed));
    button.disabled = count === 0 && !pressed;
  }
  const counted = () => make("span", { class: "count" });

  const marks = MARKS.map((mark, number) => {
    if (!about.any[number]) return null;
    const button = facetButton({ class: "mark", "data-mark": mark }, unseen("any label "), `${mark} `, counted());
    button.addEventListener("click", () => changed((choice) => { choice.any = toggled(choice.any, mark); }));
    byId("marks").append(make("li", {}, button));
    return button;
  });
  byId("marks").closest("section").hidden = !marks.some(Boolean);

  const features = about.features.map((feature, number) => {
    const buttons = Object.fromEntries(OF_A_FEATURE.map((mark, place) => {
      if (place > 1 && !feature.marks[place]) return [mark, null];
      const words = place > 1 ? [unseen(`${feature.name} `), `${mark} `] : [];
      const button = facetButton({ class: place > 1 ? "mark" : mark, "data-side": mark, "data-feature": number }, ...words, counted());
      button.addEventListener("click", () => changed((choice) => toggleFeature(choice, mark, feature.name)));
      return [mark, button];
    }));
    const extra = MARKS.map((mark) => buttons[mark]).filter(Boolean);
    const more = make("div", { class: "more-marks", hidden: true }, ...extra);
    const opener = make("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-label": `marks of ${feature.name}`, disabled: !extra.length }, "…");
    const open = (wanted) => { more.hidden = !wanted; opener.setAttribute("aria-expanded", String(wanted)); };
    opener.addEventListener("click", () => open(more.hidden));
    const name = make("bdi", { title: feature.definition || feature.name }, feature.name);
    const row = make("li", {}, name, buttons.yes, buttons.no, opener, more);
    byId("facets").append(row);
    return { row, buttons, open, name: feature.name };
  });
  byId("facets").closest("section").hidden = !features.length;

  function valueButtons({ name }, list, { values, more, empty }, choice) {
    const chosen = choice.values.get(name) || [];
    const entry = (words, shown, count, pressed, change) => {
      const button = facetButton({ class: "value" }, unseen(`${name}: `), make("bdi", { title: words }, shown), " ", counted());
      show(button, count, pressed);
      button.addEventListener("click", () => changed(change));
      return make("li", {}, button);
    };
    const cut = (text) => (text.length > 160 ? `${text.slice(0, 159)}…` : text);
    list.replaceChildren(
      ...(values || []).map(([value, count]) => entry(value, cut(value), count, chosen.includes(value), (choice_) => toggleValue(choice_, name, value))),
      ...(empty || choice.empty.has(name) ? [entry("no value", "no value", empty, choice.empty.has(name), ({ empty: of }) => { if (!of.delete(name)) of.add(name); })] : []),
      ...(more ? [make("li", { class: "caption" }, `${spelled(more)} more values`)] : []));
  }
  function range({ name, low, high }) {
    const field = (words, place, limit) => {
      const input = make("input", { type: "number", step: "any", placeholder: String(Number(limit.toPrecision(6))), "aria-label": `${name} ${words}` });
      input.addEventListener("change", () => changed(({ ranges }) => {
        const now = ranges.get(name) || ["", ""];
        now[place] = input.value.trim();
        if (now.some((one) => one !== "")) ranges.set(name, now);
        else ranges.delete(name);
      }));
      return input;
    };
    const bars = make("div", { class: "bars", "aria-hidden": "true" });
    const inputs = [field("from", 0, low), field("to", 1, high)];
    return { inputs, bars, box: make("div", { class: "range" }, bars, inputs[0], make("span", { "aria-hidden": "true" }, "–"), inputs[1]) };
  }
  function drawBars(bars, bins) {
    const top = Math.max(1, ...bins);
    bars.replaceChildren(...bins.map((count) => {
      const bar = make("span");
      bar.style.height = `${count ? Math.max(4, (100 * count) / top) : 0}%`;
      return bar;
    }));
  }

  const columns = about.columns.map((column, number) => {
    const list = make("ul", { class: "values" });
    const numeric = column.distinct === undefined ? range(column) : null;
    const look = column.distinct > MANY_VALUES ? make("input", {
      type: "search", class: "look", placeholder: `Find among ${spelled(column.distinct)} values`, autocomplete: "off", "aria-label": `Find a value of ${column.name}`,
    }) : null;
    look?.addEventListener("input", later(() => changed((choice) => { choice.look.set(column.name, look.value.trim()); })));
    const box = make("details", { class: "column", open: number < OPEN_COLUMNS },
      make("summary", {}, make("bdi", {}, column.name)), ...(numeric ? [numeric.box] : []), ...(look ? [look] : []), list);
    byId("columns").append(box);
    return { box, list, numeric, name: column.name };
  });
  byId("columns").closest("section").hidden = !columns.length;

  byId("find").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLocaleLowerCase();
    let any = false;
    for (const [element, name] of [...features.map((one) => [one.row, one.name]), ...columns.map((one) => [one.box, one.name])]) {
      element.hidden = !name.toLocaleLowerCase().includes(wanted);
      any ||= !element.hidden;
    }
    byId("no-facet").hidden = any;
  });

  // The field that is typed in keeps what is typed.
  function fill(input, text) {
    if (document.activeElement !== input) input.value = text;
  }

  return function update(answer, choice) {
    marks.forEach((button, number) => {
      if (button) show(button, answer.any[number], choice.any.includes(MARKS[number]));
    });
    features.forEach(({ row, buttons, open, name }, number) => {
      OF_A_FEATURE.forEach((mark, place) => {
        const words = place > 1 ? "" : `${mark === "yes" ? "has" : "lacks"} ${name}`;
        if (buttons[mark]) show(buttons[mark], answer.features[number][place], isChosen(choice, mark, name), words);
      });
      row.classList.toggle("chosen", choice.features.some(([, of]) => of === name));
      if (MARKS.some((mark) => isChosen(choice, mark, name))) open(true);
    });
    columns.forEach((column, number) => {
      const chosen = choice.values.has(column.name) || choice.empty.has(column.name) || choice.ranges.has(column.name);
      if (chosen) column.box.open = true;
      column.box.classList.toggle("chosen", chosen);
      const focused = [...column.list.querySelectorAll("button")].findIndex((one) => one === document.activeElement);
      valueButtons(column, column.list, answer.columns[number], choice);
      if (focused >= 0) column.list.querySelectorAll("button")[Math.min(focused, column.list.querySelectorAll("button").length - 1)]?.focus();
      if (!column.numeric) return;
      drawBars(column.numeric.bars, answer.columns[number].bins);
      column.numeric.inputs.forEach((input, place) => fill(input, (choice.ranges.get(column.name) || ["", ""])[place]));
    });
  };
}

// Called once typing has paused.
function later(action, milliseconds = 200) {
  let waiting = 0;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(action, milliseconds);
  };
}
