// The browser over what the studio serves: every question goes to the server, so that labels are as they are now.
let browsing = null; // for who works at the console
(() => {
  const page = byId("browsing").dataset;
  const address = `/runs/${page.key}/browse`;
  // Places as a bit string.
  function bitsOf(places) {
    const bytes = new Uint8Array(places.length ? (places[places.length - 1] >>> 3) + 1 : 0);
    for (const place of places) bytes[place >>> 3] |= 1 << (place & 7);
    let text = "";
    for (let start = 0; start < bytes.length; start += 8_192) text += String.fromCharCode(...bytes.subarray(start, start + 8_192));
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }
  async function ask(path, query = "") {
    let reply;
    try {
      reply = await fetch(`${address}/${path}${query ? `?${query}` : ""}`);
    } catch {
      throw new Error("The studio does not answer: is it running?");
    }
    if (!reply.ok) throw new Error(await problemOf(reply));
    return reply.json();
  }
  async function problemOf(reply) {
    const problem = new DOMParser().parseFromString(await reply.text(), "text/html").body.innerText.trim();
    return problem || `The studio does not answer (status ${reply.status}): reload the page.`;
  }
  function send(kind, selected) {
    byId("export").elements.kind.value = kind;
    byId("export").elements.rows.value = bitsOf(selected.map(({ place }) => place));
    byId("export").submit();
  }
  const paired = ({ places, ids }) => places.map((place, at) => ({ place, id: ids ? ids[at] : undefined }));

  ask("about").then((about) => {
    document.body.classList.add(about.texts ? "texts" : "images");
    const source = (place, size) => `${about.media}${place}/${size === "small" ? "small-still" : size}`;
    const catalogue = {
      about,
      find: (choice, start, count) => ask("found", `${writeChoice(choice, false)}&start=${start}&count=${count}`),
      matching: (choice) => ask("all", writeChoice(choice, false)).then(paired),
      named: (names) => ask("all", new URLSearchParams(names.map((name) => ["selected", name])).toString()).then(paired),
      example: (wanted) => ask("example", new URLSearchParams(typeof wanted === "number" ? { row: wanted } : { id: wanted }).toString()),
      source,
      featureLink: (number) => `/runs/${page.key}/correct?${new URLSearchParams({ feature: about.features[number].name, which: "all" })}`,
      exports: { ids: (selected) => send("ids", selected), ...(about.finished ? { parquet: (selected) => send("parquet", selected) } : {}) },
    };
    byId("reading").hidden = true;
    browsing = startBrowser(catalogue, makePictures(source, about.texts));
  }, (problem) => {
    byId("reading").textContent = problem.message;
    byId("reading").classList.add("notice");
  });
})();
