// Map and matrix of a run that the studio serves.
{
  const canvas = byId("map") ?? byId("matrix");
  const own = `/runs/${canvas.dataset.key}`;
  const said = { 1: "has", 0: "lacks", "-": "unknown:" };
  fetch(`${own}/plot`).then((reply) => reply.json()).then((data) => {
    const picture = data.media ? (place) => `${data.media}${place}/small-still` : null;
    const show = (words) => { byId("pointed").textContent = words; };
    if (canvas.id === "matrix") {
      makeMatrix(canvas, data, {
        picture,
        open: (feature) => { location.href = `${own}?${new URLSearchParams({ feature: data.names[feature] })}`; },
        point: (at) => show(at ? `${data.ids[at.example]} ${said[data.labels[at.feature][at.example]]} ${data.names[at.feature]}` : ""),
      });
      return;
    }
    const map = makeMap(canvas, data, {
      picture,
      open: (place) => { location.href = `${own}/browse#${new URLSearchParams({ example: data.ids[place] })}`; },
      point: (place) => show(place < 0 ? "" : data.ids[place]),
    });
    const choose = () => map.choose(Number(byId("card").dataset.number ?? NaN));
    document.addEventListener("htmx:afterSettle", choose);
    choose();
  }, () => { byId("pointed").textContent = "The studio does not answer."; });
}
