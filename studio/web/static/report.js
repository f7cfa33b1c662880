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
    pictures.giveAll(document);
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });

  browsing = startBrowser(carriedCatalogue(data, source), pictures, { scroll: true });
  document.addEventListener("click", (event) => {
    const target = event.target.closest("main [data-example], [data-facet]");
    if (target?.dataset.facet) browsing.only(Number(target.dataset.facet));
    else if (target) browsing.open(Number(target.dataset.example));
  });
})();
