let browsing = null; // for who works at the console
(() => {
  const data = JSON.parse(byId("data").textContent);
  let carried = null;
  function source(place) {
    if (carried === null) carried = JSON.parse(byId("pictures").textContent);
    return carried[place] ? `data:${data.mime};base64,${carried[place]}` : "";
  }
  const pictures = makePictures(source, data.texts !== null);
  pictures.watch(document);
  window.addEventListener("beforeprint", () => {
    document.body.classList.remove("tabbed");
    pictures.giveAll(document);
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => document.body.classList.add("tabbed"));

  // Views: one at a time, and in that of the features one card or what was found. The address names a part of a view,
  // or what the browser has chosen.
  const views = [...document.querySelectorAll(".view")];
  const rows = [...document.querySelectorAll(".feature-row")];
  const browser = byId("browse").closest(".view");
  function show(id) {
    const target = byId(id) || byId("overview");
    const view = target.closest(".view");
    const card = target.closest("article.feature[id], #overview");
    for (const one of views) one.classList.toggle("current", one === view);
    for (const tab of document.querySelectorAll(".tabs a")) {
      const current = byId(tab.hash.slice(1))?.closest(".view") === view;
      if (current) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    if (view === views[0]) {
      const shown = card || byId("overview");
      for (const one of view.querySelectorAll(".cards > *")) one.classList.toggle("current", one === shown);
      for (const row of rows) {
        if (row.hash === `#${shown.id}`) row.setAttribute("aria-current", "true");
        else row.removeAttribute("aria-current");
      }
      rows.find((row) => row.hash === `#${shown.id}`)?.scrollIntoView({ block: "nearest" });
    }
    if (view === views[0] || target === view.firstElementChild) scrollTo(0, 0);
    else target.scrollIntoView();
  }
  function go(id) {
    show(id);
    try {
      history.pushState(null, "", `#${id}`);
    } catch {
      // Inside a notebook's frame there is no address to change.
    }
  }
  function route() {
    const named = location.hash.slice(1);
    show(named.includes("=") ? "browse" : decodeURIComponent(named));
  }

  const all = [...byId("listed").children];
  const by = {
    best: (row) => Number(row.dataset.best), order: (row) => Number(row.dataset.order),
    doubt: (row) => -Number(row.dataset.doubt), name: (row) => row.querySelector("bdi").textContent.toLowerCase(),
  };
  byId("sort-features").addEventListener("change", ({ target }) => {
    const key = by[target.value];
    byId("listed").append(...all.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0)));
  });
  byId("find-feature").addEventListener("input", ({ target }) => {
    const wanted = target.value.trim().toLowerCase();
    for (const row of all) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  document.addEventListener("keydown", (event) => {
    if (!"jk".includes(event.key) || event.target.closest("input, select, dialog") || !views[0].classList.contains("current")) return;
    const seen = [...document.querySelectorAll(".feature-row:not([hidden])")];
    const next = seen[seen.findIndex((row) => row.hasAttribute("aria-current")) + (event.key === "j" ? 1 : -1)];
    if (next) go(next.hash.slice(1));
  });

  browsing = startBrowser(carriedCatalogue(data, source), pictures, { reveal: () => show("browse") });
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    const target = event.target.closest("main [data-example], [data-facet]");
    if (link && !link.classList.contains("skip")) {
      event.preventDefault();
      byId("example").close();
      go(link.hash.slice(1));
    } else if (target?.dataset.facet) browsing.only(Number(target.dataset.facet));
    else if (target && !browser.contains(target)) browsing.open(Number(target.dataset.example));
  });
  document.body.classList.add("tabbed");
  window.addEventListener("hashchange", route);
  window.addEventListener("popstate", route);
  route();
})();
