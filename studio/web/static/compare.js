(() => {
  const data = JSON.parse(byId("data").textContent);
  const FIRST = 60;

  // Tables: a click on a heading sorts by it, another one turns the order; what is not defined comes last.
  function sort(table, column, descending) {
    const body = table.tBodies[0];
    const valued = [...body.rows].map((row) => {
      const text = row.cells[column].dataset.value ?? row.cells[column].textContent;
      return { row, text, value: text === "" ? NaN : Number(text) };
    });
    const numbers = valued.some(({ value }) => !Number.isNaN(value));
    valued.sort((a, b) => {
      if (!numbers) return a.text.localeCompare(b.text) * (descending ? -1 : 1);
      if (Number.isNaN(a.value) || Number.isNaN(b.value)) return Number.isNaN(a.value) - Number.isNaN(b.value);
      return (a.value - b.value) * (descending ? -1 : 1);
    });
    body.append(...valued.map(({ row }) => row));
  }
  document.querySelectorAll("table.sortable").forEach((table) => {
    table.tHead.addEventListener("click", (event) => {
      const heading = event.target.closest("th[aria-sort]");
      if (!heading) return;
      const first = heading.classList.contains("n") ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = heading.getAttribute("aria-sort") === first ? other : first;
      table.tHead.querySelectorAll("th[aria-sort]").forEach((one) => one.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", order);
      sort(table, heading.cellIndex, order === "descending");
    });
  });
  byId("pair")?.addEventListener("change", (event) => {
    document.querySelectorAll(".pair-table").forEach((one) => { one.hidden = one.dataset.pair !== event.target.value; });
  });

  document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", async () => {
    const text = byId(button.dataset.copy);
    getSelection().selectAllChildren(text);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "copied";
    } catch {
      button.textContent = "selected: copy it"; // a page from disk may not write to the clipboard
    }
  }));

  // Cards: one label on which oracles differ, with everybody's votes.
  let pictures = null;
  function source(place) {
    if (pictures === null) pictures = JSON.parse(byId("pictures").textContent);
    return pictures[place] ? `data:${data.mime};base64,${pictures[place]}` : "";
  }
  const WORDS = new Map([[1, "yes"], [0, "no"], [-1, "unknown"]]);
  const SVG = "http://www.w3.org/2000/svg";
  function ballot(yes, no) {
    const drawing = document.createElementNS(SVG, "svg");
    drawing.setAttribute("viewBox", `0 0 ${Math.max(yes + no, 1)} 1`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("aria-hidden", "true");
    for (const [count, start, style] of [[yes, 0, "yes"], [no, yes, "no"]]) {
      const part = document.createElementNS(SVG, "rect");
      part.setAttribute("x", start);
      part.setAttribute("width", count);
      part.setAttribute("height", 1);
      part.setAttribute("class", style);
      drawing.append(part);
    }
    return make("span", { class: "ballot" }, drawing);
  }
  function said([yes, no, refused]) {
    const parts = [[yes, "yes"], [no, "no"], [refused, "no answer"]].filter(([count]) => count);
    return parts.map(([count, word]) => `${count} ${word}`).join(", ") || "no vote";
  }
  function card([feature, place, labels, votes, truth]) {
    const sides = labels.map((label, number) => make("div", { class: "side", title: said(votes[number]) },
      make("bdi", {}, data.oracles[number]),
      make("span", { class: WORDS.get(label) }, `${WORDS.get(label)} ${votes[number][0]}:${votes[number][1]}`),
      ballot(votes[number][0], votes[number][1])));
    const url = source(place);
    const text = data.texts ? data.texts[place] : "";
    const shown = url ? [make("img", { src: url, alt: data.ids[place], decoding: "async" })] : [];
    if (text || !url) shown.push(make("bdi", { class: "text" }, text || data.ids[place]));
    const about = make("div", { class: "about" }, make("h3", {}, make("bdi", {}, data.features[feature])),
      make("bdi", { class: "id" }, data.ids[place]), ...sides);
    if (truth !== -1) about.append(make("div", { class: "truth" }, `in truth ${WORDS.get(truth)}`));
    return make("article", { class: "card", "data-feature": feature }, make("div", { class: "shown" }, ...shown), about);
  }

  const grid = byId("cards");
  if (!grid) return;
  const ofFeature = byId("card-feature");
  const ofRight = byId("card-right");
  const present = [...new Set(data.cards.map(([feature]) => feature))].sort((a, b) => a - b);
  ofFeature.append(...present.map((feature) => make("option", { value: feature }, data.features[feature])));
  ofRight?.append(...data.oracles.map((name, number) => make("option", { value: number }, name)),
    make("option", { value: "unknown" }, "not known"));
  let matching = [];
  let shown = 0;
  function wasRight([, , labels, , truth], who) {
    if (who === "unknown") return truth === -1;
    return truth !== -1 && labels[Number(who)] === truth;
  }
  function showMore() {
    grid.append(...matching.slice(shown, shown + FIRST).map(card));
    shown = Math.min(shown + FIRST, matching.length);
    byId("more-cards").hidden = shown >= matching.length;
  }
  function refresh() {
    const who = ofRight ? ofRight.value : "";
    matching = data.cards.filter((one) => (ofFeature.value === "" || one[0] === Number(ofFeature.value))
      && (who === "" || wasRight(one, who)));
    byId("card-count").textContent = `${matching.length.toLocaleString("en")} of ${data.cards.length.toLocaleString("en")}`;
    grid.replaceChildren();
    shown = 0;
    showMore();
  }
  ofFeature.addEventListener("change", refresh);
  ofRight?.addEventListener("change", refresh);
  byId("more-cards").addEventListener("click", showMore);
  document.addEventListener("click", (event) => {
    const wanted = event.target.closest(".see-cards");
    if (wanted) {
      ofFeature.value = wanted.dataset.feature;
      if (ofRight) ofRight.value = "";
      refresh();
      byId("disagreements").scrollIntoView();
    }
  });
  window.addEventListener("beforeprint", () => { while (shown < matching.length) showMore(); });
  refresh();
})();
